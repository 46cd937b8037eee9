"""The size of the file after compact."""


def test_compact_gives_the_space_of_removed_rows_back(queue, path):
    queue.enqueue_many("x" * 10_000 for _ in range(300))
    queue.purge("pending")
    queue.compact()
    assert path.stat().st_size < 200_000
    assert queue.enqueue("y") == 301
    queue.close()
    assert path.stat().st_size < 200_000
