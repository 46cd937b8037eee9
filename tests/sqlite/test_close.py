"""What closing leaves of the file, and what a locked file costs."""

import contextlib
import os

from membox_queue import Queue, StorageError


def test_closing_the_last_queue_leaves_one_complete_file(path, sql):
    with Queue(path) as queue:
        queue.enqueue_many(["x"] * 100)
    assert os.listdir(path.parent) == [path.name]
    assert sql(path, "SELECT count(*) FROM ingest_queue") == [[100]]


def test_a_lease_that_could_not_be_given_back_is_not_live_after_closing(path, writer, caplog):
    queue = Queue(path, busy_timeout=0.01)
    assert queue.acquire_worker_lease()
    close_if_idle = writer()
    queue.close()
    assert "could not release" in caplog.text
    close_if_idle()
    with Queue(path) as other:
        assert not other.worker_is_alive()
        assert other.acquire_worker_lease()


def test_closing_after_the_file_vanished_is_logged_and_does_not_raise(path, caplog):
    queue = Queue(path)
    assert queue.acquire_worker_lease()
    with contextlib.suppress(StorageError), queue.lock("nightly"):
        for file in path.parent.iterdir():
            file.unlink()
        queue.close()
    assert queue.closed
    assert "removed or replaced" in caplog.text
