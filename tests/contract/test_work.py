"""work: claim and handle until stopped."""

import threading

from loops_in_threads import ended, nothing
from membox_queue import (
    DrainReport,
)
from membox_queue.loops import slot, threads


def test_work_handles_what_is_there_and_what_comes_until_it_is_stopped(queue, working, until):
    queue.enqueue("there")
    handled = []
    future = working(lambda item: handled.append(item.content))
    until(lambda: handled == ["there"])
    queue.enqueue("comes")
    until(lambda: queue.counts()["done"] == 2)
    assert ended(queue, future) == DrainReport(done=2, stopped=True)
    assert handled == ["there", "comes"]
    queue.enqueue("after")
    assert queue.get(3).attempt == 0


def test_work_takes_no_worker_lease_and_any_number_may_work(queue, open_queue, background, until):
    both = threading.Barrier(3)
    with open_queue() as other:
        queue.enqueue_many(["a", "b"])
        futures = [background(one.work, lambda item: both.wait(30) and None) for one in (queue, other)]
        assert queue.stats()["worker"] is None
        both.wait(30)
        until(lambda: queue.counts()["done"] == 2)
        assert [ended(one, future).done for one, future in zip((queue, other), futures, strict=True)] == [1, 1]


def test_retention_is_looked_after_while_a_loop_has_nothing_to_do(open_queue, background, clock, monkeypatch, until):
    monkeypatch.setattr(slot, "MAINTAIN_EVERY", 0.0)
    monkeypatch.setattr(threads, "SLICE", 0.02)
    with open_queue(keep_for=60) as queue:
        queue.enqueue("x")
        future = background(queue.work, nothing)
        until(lambda: queue.counts()["done"] == 1)
        clock.advance(61)
        until(lambda: queue.get(1) is None)
        assert ended(queue, future).done == 1


def test_a_schedule_that_ticks_wakes_a_loop(queue, working, clock, until):
    queue.schedule("tick", "x", every=60)
    handled = []
    future = working(lambda item: handled.append(item.content))
    for count in (1, 2):
        clock.advance(60)
        until(lambda count=count: len(handled) == count)
    assert ended(queue, future).done == 2
