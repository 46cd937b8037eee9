"""The slots of a loop: how many items are handled at once, and who claims the next."""

import threading
import time

from loops_in_threads import ended, nothing
from membox_queue import (
    DrainReport,
)
from membox_queue.loops import threads


def test_as_many_items_are_handled_at_once_as_there_are_slots_and_no_more(queue):
    queue.enqueue_many(range(12))
    lock, together = threading.Lock(), threading.Barrier(3)
    running, most = 0, []

    def handler(item):
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        together.wait(30)
        with lock:
            running -= 1

    assert queue.drain(handler, concurrency=3) == DrainReport(done=12)
    assert max(most) == 3


def test_every_item_is_handled_once_whatever_the_concurrency(queue):
    queue.enqueue_many(range(300))
    handled = []
    assert queue.drain(lambda item: handled.append(item.content), concurrency=8) == DrainReport(done=300)
    assert sorted(handled) == list(range(300))
    assert not queue.worker_is_alive()


def test_a_freed_slot_claims_at_once_while_others_are_at_work(queue, working, until):
    queue.enqueue_many(["slow", *range(5)])
    slow = threading.Event()
    future = working(lambda item: slow.wait(30) and None if item.content == "slow" else None, concurrency=2)
    until(lambda: queue.counts()["done"] == 5)
    assert queue.get(1).status == "processing"
    slow.set()
    until(lambda: queue.counts()["done"] == 6)
    assert ended(queue, future).done == 6


def test_items_that_come_together_wake_as_many_idle_slots(queue, working, monkeypatch, until):
    monkeypatch.setattr(threads, "SLICE", 20.0)
    together = threading.Barrier(4)
    idle = threading.Barrier(5)
    queue.enqueue_many(range(4))
    future = working(lambda item: (idle if item.content < 4 else together).wait(10) and None, concurrency=4)
    idle.wait(10)
    until(lambda: queue.counts()["done"] == 4)
    queue.enqueue_many(range(4, 8))
    until(lambda: queue.counts()["done"] + queue.counts()["failed"] == 8)
    assert ended(queue, future) == DrainReport(done=8, stopped=True)


def test_idle_slots_leave_at_once_when_a_drain_is_over(queue, monkeypatch):
    monkeypatch.setattr(threads, "SLICE", 20.0)
    queue.enqueue_many(range(3))
    started = time.monotonic()
    assert queue.drain(nothing, concurrency=8) == DrainReport(done=3)
    assert time.monotonic() - started < 10
