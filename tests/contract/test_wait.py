"""wait: until an item has ended."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from membox_queue import QueueClosedError
from programs import PROGRAMS


@pytest.fixture
def waiting(queue):
    """Start a wait in a thread; its future, once it is under way."""
    with ThreadPoolExecutor(4) as pool:

        def waiting(qid, **options):
            began = threading.Event()

            def wait():
                began.set()
                return queue.wait(qid, **options)

            future = pool.submit(wait)
            assert began.wait(30)
            assert not future.done()
            return future

        yield waiting
        queue.close()


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled"])
def test_an_item_that_has_ended_already_comes_back_at_once(queue, ending):
    qid = queue.enqueue("x")
    if ending == "cancelled":
        queue.cancel(qid)
    elif ending == "done":
        queue.mark_done(queue.claim(), result=5)
    else:
        queue.mark_failed(queue.claim(), "no")
    item = queue.wait(qid, timeout=0)
    assert (item.id, item.status, item.result) == (qid, ending, 5 if ending == "done" else None)


@pytest.mark.parametrize("timeout", [None, 60, timedelta(minutes=1)])
def test_an_item_that_ends_in_another_thread_ends_the_wait(queue, waiting, timeout):
    qid = queue.enqueue("x")
    future = waiting(qid, timeout=timeout)
    queue.mark_done(queue.claim(), result={"a": 1})
    assert future.result(30).result == {"a": 1}


def test_several_may_wait_for_the_same_item_and_for_others(queue, waiting):
    first, second = queue.enqueue_many(["a", "b"])
    futures = [waiting(first), waiting(first), waiting(second)]
    queue.mark_done(queue.claim())
    assert [future.result(30).id for future in futures[:2]] == [first, first]
    assert not futures[2].done()
    queue.mark_failed(queue.claim(), "no")
    assert futures[2].result(30).error == "no"


def test_an_item_that_ends_in_another_process_ends_the_wait(queue, waiting, address, start):
    worker = start(PROGRAMS / "handle_one.py", address)
    assert worker.stdout.readline() == "ready\n"
    future = waiting(queue.enqueue(21))
    assert worker.communicate("\n", timeout=30)[0] == "1\n"
    assert future.result(30).result == 42


def test_a_retry_is_no_end(queue, waiting, clock):
    qid = queue.enqueue("x")
    future = waiting(qid)
    queue.mark_failed(queue.claim(), "no", retry_in=5)
    clock.advance(5)
    assert not future.done()
    queue.mark_done(queue.claim())
    item = future.result(30)
    assert (item.status, item.attempt) == ("done", 2)


@pytest.mark.parametrize("timeout", [0, 0.05, timedelta(milliseconds=50)])
def test_an_item_that_does_not_end_in_time_is_a_timeout(queue, timeout):
    qid = queue.enqueue("x")
    with pytest.raises(TimeoutError, match=f"item {qid}"):
        queue.wait(qid, timeout)


def test_an_item_that_is_not_there_is_an_error(queue):
    with pytest.raises(ValueError, match="no item 7"):
        queue.wait(7, timeout=30)


def test_an_item_of_another_queue_is_not_there(queue, open_queue):
    with open_queue("mail") as mail:
        qid = mail.enqueue("x")
        with pytest.raises(ValueError, match=f"no item {qid}"):
            queue.wait(qid, timeout=30)


def test_closing_the_queue_ends_the_wait(queue, waiting):
    future = waiting(queue.enqueue("x"))
    queue.close()
    assert isinstance(future.exception(30), QueueClosedError)


@pytest.mark.parametrize(("qid", "timeout"), [("1", 1), (None, 1), (1, -1), (1, "soon"), (1, float("nan"))])
def test_wrong_arguments_are_refused(queue, qid, timeout):
    queue.enqueue("x")
    with pytest.raises((TypeError, ValueError)):
        queue.wait(qid, timeout)


def test_a_last_attempt_whose_worker_was_killed_ends_for_one_who_waits(queue, address, start):
    qid = queue.enqueue("x", max_retries=1)
    start(PROGRAMS / "die_with_an_item.py", address).wait(30)
    assert (queue.counts()["processing"], queue.stats()["stuck"]) == (1, [qid])
    item = queue.wait(qid, timeout=30)
    assert (item.status, item.retries) == ("failed", 1)
    assert "vanished" in item.error
    assert queue.stats()["stuck"] == []


def test_a_worker_that_is_killed_while_one_waits_ends_the_wait(queue, address, start, waiting):
    qid = queue.enqueue("x", max_retries=1)
    future = waiting(qid)
    start(PROGRAMS / "die_with_an_item.py", address).wait(30)
    assert future.result(30).status == "failed"


def test_a_last_attempt_whose_lease_ran_out_ends_for_one_who_waits(queue, clock):
    qid = queue.enqueue("x", max_retries=1)
    held = queue.claim()
    clock.advance(61)
    assert queue.wait(qid, timeout=0).status == "failed"
    assert not queue.mark_done(held)


def test_an_attempt_that_was_lost_is_not_the_end_while_retries_are_left(queue, address, start):
    qid = queue.enqueue("x")
    start(PROGRAMS / "die_with_an_item.py", address).wait(30)
    with pytest.raises(TimeoutError):
        queue.wait(qid, timeout=0)
    assert (queue.get(qid).status, queue.get(qid).retries) == ("pending", 1)


def test_reading_records_nothing(queue, clock):
    qid = queue.enqueue("x", max_retries=1)
    queue.claim()
    clock.advance(61)
    for look in (queue.counts, queue.failures, queue.stats, queue.check, queue.pending, queue.coverage_note):
        look()
    assert queue.get(qid).status == "processing"
