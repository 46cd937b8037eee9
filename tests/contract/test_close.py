"""close: the end of an object's use of the file."""

import contextlib
import os
import threading

import pytest
from membox_queue import Queue, QueueClosedError, StorageError

VERBS = {
    "enqueue": lambda queue, item: queue.enqueue("x"),
    "enqueue_many": lambda queue, item: queue.enqueue_many(["x"]),
    "enqueue_many of nothing": lambda queue, item: queue.enqueue_many([]),
    "enqueue_file": lambda queue, item: queue.enqueue_file(__file__),
    "claim": lambda queue, item: queue.claim(),
    "claim, waiting": lambda queue, item: queue.claim(wait=5),
    "claim_many": lambda queue, item: queue.claim_many(2),
    "mark_done": lambda queue, item: queue.mark_done(item),
    "mark_done_many": lambda queue, item: queue.mark_done_many([item]),
    "mark_failed": lambda queue, item: queue.mark_failed(item, "x"),
    "release": lambda queue, item: queue.release(item),
    "extend": lambda queue, item: queue.extend(item, 60),
    "with item": lambda queue, item: item.__enter__(),
    "retry_failed": lambda queue, item: queue.retry_failed(),
    "retry": lambda queue, item: queue.retry(1),
    "delete": lambda queue, item: queue.delete(1),
    "get": lambda queue, item: queue.get(1),
    "items": lambda queue, item: queue.items(),
    "counts": lambda queue, item: queue.counts(),
    "pending": lambda queue, item: queue.pending(),
    "failures": lambda queue, item: queue.failures(),
    "coverage_note": lambda queue, item: queue.coverage_note(),
    "acquire_worker_lease": lambda queue, item: queue.acquire_worker_lease(),
    "refresh_worker_lease": lambda queue, item: queue.refresh_worker_lease(),
    "release_worker_lease": lambda queue, item: queue.release_worker_lease(),
    "worker_is_alive": lambda queue, item: queue.worker_is_alive(),
    "drain": lambda queue, item: queue.drain(lambda item: None),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_after_close_says_that_the_queue_is_closed(queue, verb):
    queue.enqueue("x")
    item = queue.claim()
    queue.close()
    with pytest.raises(QueueClosedError):
        VERBS[verb](queue, item)


def test_closing_twice_is_closing_once(queue):
    queue.close()
    queue.close()
    assert queue.closed


def test_closing_the_last_queue_leaves_one_complete_file(path, sql):
    with Queue(path) as queue:
        queue.enqueue_many(["x"] * 100)
    assert os.listdir(path.parent) == [path.name]
    assert sql(path, "SELECT count(*) FROM ingest_queue") == [[100]]


def test_closing_one_queue_leaves_others_of_the_same_file_open(path):
    with Queue(path) as first, Queue(path) as second:
        first.close()
        assert second.enqueue("x") == 1
        assert second.claim().content == "x"


def test_closing_ends_a_wait_in_another_thread(queue):
    raised = []

    def wait():
        try:
            queue.claim(wait=60)
        except QueueClosedError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    queue.close()
    waiting.join(30)
    assert len(raised) == 1


def test_closing_gives_the_worker_lease_back(queue, path):
    with Queue(path) as other:
        assert other.acquire_worker_lease()
        assert queue.worker_is_alive()
    assert not queue.worker_is_alive()


def test_closing_after_the_file_vanished_with_a_lease_and_a_lock_held_is_logged_and_does_not_raise(path, caplog):
    queue = Queue(path)
    assert queue.acquire_worker_lease()
    with contextlib.suppress(StorageError), queue.lock("nightly"):
        for file in path.parent.iterdir():
            file.unlink()
        queue.close()
    assert queue.closed
    assert "removed or replaced" in caplog.text


def test_a_lease_that_could_not_be_given_back_is_not_live_after_closing(path, writer, caplog):
    queue = Queue(path, busy_timeout=0.01)
    assert queue.acquire_worker_lease()
    let_go = writer()
    queue.close()
    assert "could not release" in caplog.text
    let_go()
    with Queue(path) as other:
        assert not other.worker_is_alive()
        assert other.acquire_worker_lease()
