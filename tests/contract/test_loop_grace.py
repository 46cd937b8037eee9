"""Stopping a loop: its handlers are told, have a grace, and lose their items after it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from loops_in_threads import nothing
from membox_queue import (
    DrainReport,
    RetryLater,
    StaleClaimError,
)


def test_stop_before_anything_runs_is_nothing(queue):
    queue.enqueue("x")
    queue.stop()
    assert queue.drain(nothing) == DrainReport(done=1)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_handler_may_stop_its_own_loop(queue, concurrency):
    queue.enqueue_many(range(20))
    report = queue.drain(lambda item: queue.stop(), concurrency=concurrency)
    assert report.stopped
    assert 1 <= report.done <= concurrency
    assert report.done + queue.counts()["pending"] == 20
    assert not queue.worker_is_alive()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_runs_when_the_grace_is_over_is_given_back_uncounted(queue, working, until, concurrency):
    queue.enqueue("slow")
    began, free = threading.Event(), threading.Event()

    def handler(item):
        began.set()
        free.wait(30)

    future = working(handler, concurrency=concurrency, grace=timedelta(milliseconds=50))
    assert began.wait(30)
    queue.stop()
    until(lambda: queue.get(1).status == "pending")
    assert (queue.get(1).retries, queue.get(1).attempt) == (0, 1)
    free.set()
    assert future.result(30) == DrainReport(released=1, stopped=True)
    assert queue.get(1).status == "pending"


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_handler_that_goes_on_after_the_grace_learns_that_its_claim_is_gone(queue, working, until, concurrency):
    queue.enqueue("slow")
    told = []

    def handler(item):
        told.append(item.lost)
        until(lambda: item.lost)
        with pytest.raises(StaleClaimError):
            item.check()
        told.append(queue.mark_done(item))

    future = working(handler, concurrency=concurrency, grace=0.05)
    until(lambda: told)
    queue.stop()
    assert future.result(30) == DrainReport(released=1, stopped=True)
    until(lambda: told == [False, False])


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_handler_learns_that_its_loop_was_asked_to_stop(queue, until, concurrency):
    before = []

    def in_steps(item):
        before.append(item.stopping)
        until(lambda: item.stopping)
        raise RetryLater(0, count=False)

    queue.enqueue("x")
    with ThreadPoolExecutor() as threads:
        working = threads.submit(queue.work, in_steps, concurrency=concurrency)
        until(lambda: before)
        queue.stop()
        assert working.result(30) == DrainReport(released=1, stopped=True)
    assert before == [False]
    assert queue.claim().stopping is False


def test_a_loop_that_ends_by_itself_was_not_asked_to_stop(queue):
    seen = []
    queue.enqueue("x")
    queue.drain(lambda item: seen.append(item.stopping), limit=1)
    assert seen == [False]
