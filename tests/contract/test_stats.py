"""stats and compact: the queue at a glance, and its space given back."""

from datetime import UTC, datetime

from membox_queue import NewItem


def test_an_empty_queue(queue):
    stats = queue.stats()
    assert stats["counts"] == queue.counts()
    assert (stats["oldest_pending_age"], stats["next_due_at"], stats["groups"]) == (None, None, 0)
    assert (stats["paused"], stats["worker_is_alive"]) == (False, False)


def test_what_waits_who_works_and_what_comes(queue, clock):
    queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g"), NewItem("c", delay=600)])
    clock.advance(5)
    queue.claim()
    queue.pause()
    queue.acquire_worker_lease()
    stats = queue.stats()
    assert stats["oldest_pending_age"] == 5
    assert isinstance(stats["next_due_at"], datetime)
    assert stats["next_due_at"].tzinfo == UTC
    assert (stats["groups"], stats["paused"], stats["worker_is_alive"]) == (1, True, True)


def test_compact_gives_the_space_of_removed_rows_back(queue, path):
    queue.enqueue_many("x" * 10_000 for _ in range(300))
    queue.purge("pending")
    queue.compact()
    assert path.stat().st_size < 200_000
    assert queue.enqueue("y") == 301
    queue.close()
    assert path.stat().st_size < 200_000
