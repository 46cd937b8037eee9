"""Very many items that come back: other processes can write in between."""


def test_very_many_come_back_in_small_steps(queue, path, sql):
    queue.enqueue_many(range(2_500))
    sql(path, "UPDATE ingest_queue SET status = 'failed', retries = 3, finished_at = '2026-01-01 00:00:00.000'")
    assert queue.retry_all() == 2_500
    assert queue.counts()["pending"] == 2_500
