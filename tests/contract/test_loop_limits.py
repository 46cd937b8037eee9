"""When a loop ends by itself: a limit of items, a linger, a longest run of a handler."""

import time
from datetime import timedelta

import pytest
from loops_in_threads import ended, failing, nothing
from membox_queue import (
    DrainReport,
    NewItem,
    RetryLater,
)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_limit_ends_the_loop_after_so_many_items(queue, working, concurrency):
    queue.enqueue_many(range(9))
    assert working(nothing, limit=5, concurrency=concurrency).result(30) == DrainReport(done=5)
    assert queue.counts()["pending"] == 4
    assert queue.drain(nothing, limit=3, concurrency=concurrency) == DrainReport(done=3)
    assert not queue.worker_is_alive()


def test_failures_count_for_the_limit(queue):
    queue.enqueue_many(range(3))
    assert queue.drain(failing, limit=2) == DrainReport(failed=2)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_lingering_drain_stays_for_what_falls_due_in_time(queue, background, clock, until, concurrency):
    queue.enqueue_many(["now", NewItem("soon", delay=30), NewItem("late", delay=120)])
    future = background(queue.drain, nothing, linger=timedelta(seconds=60), concurrency=concurrency)
    until(lambda: queue.counts()["done"] == 1)
    assert queue.worker_is_alive()
    clock.advance(29.999)
    assert queue.worker_is_alive()
    clock.advance(0.001)
    # "late" is 90 s away then.
    assert future.result(30) == DrainReport(done=2)
    assert not queue.worker_is_alive()
    assert queue.get(3).status == "pending"


def test_without_linger_a_drain_does_not_stay(queue):
    queue.enqueue("soon", delay=30)
    assert queue.drain(nothing) == DrainReport()


def test_a_lingering_drain_stays_for_its_own_retries(queue, background, clock, until):
    queue.enqueue("x")

    def handler(item):
        if item.attempt == 1:
            raise RetryLater(20)

    future = background(queue.drain, handler, linger=60)
    until(lambda: queue.get(1).retries == 1)
    clock.advance(20)
    assert future.result(30) == DrainReport(done=1, postponed=1)


def test_a_lingering_drain_ends_when_it_is_stopped(queue, background, clock, until):
    queue.enqueue_many(["now", NewItem("soon", delay=30)])
    future = background(queue.drain, nothing, linger=60)
    until(lambda: queue.counts()["done"] == 1)
    assert ended(queue, future) == DrainReport(done=1, stopped=True)
    assert not queue.worker_is_alive()


@pytest.mark.parametrize("max_runtime", [0.05, timedelta(milliseconds=50)])
def test_a_handler_beyond_max_runtime_loses_its_item_when_the_lease_ends(open_queue, until, max_runtime):
    with open_queue(lease=0.3) as queue:
        queue.enqueue("x")
        successors = []

        def handler(item):
            successors.append(until(queue.claim))
            assert item.lost

        assert queue.drain(handler, max_runtime=max_runtime) == DrainReport(lost=1)
        assert queue.mark_done(successors[0])
        assert queue.get(1).retries == 1


def test_max_runtime_does_not_end_a_handler_that_is_within_its_lease(queue):
    queue.enqueue("x")
    assert queue.drain(lambda item: time.sleep(0.05), max_runtime=0.01) == DrainReport(done=1)
