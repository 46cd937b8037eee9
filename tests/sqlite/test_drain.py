"""Draining a SQLite file beside another writer."""

from membox_queue import DrainReport, Queue


def test_a_drain_without_the_worker_lease_finds_nothing_without_the_write_lock(path, writer):
    with Queue(path, busy_timeout=0.1) as queue:
        release = writer()
        assert queue.drain(lambda item: None, exclusive=False) == DrainReport()
        release()
