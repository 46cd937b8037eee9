"""workers: every loop is seen while it runs, and whoever else holds items."""

import asyncio
import os
import signal
import threading
from datetime import UTC

import pytest
from loops_in_threads import ended, nothing
from membox_queue import WorkerInfo
from membox_queue.errors import SimulatedCrash
from programs import PROGRAMS


@pytest.fixture
def gated():
    """A handler that says when it has begun, and waits for its gate."""

    class Gated:
        def __init__(self):
            self.begun, self.gate = threading.Event(), threading.Event()

        def __call__(self, item):
            self.begun.set()
            assert self.gate.wait(30)

    made = Gated()
    yield made
    made.gate.set()


def only(queue):
    (worker,) = queue.workers()
    return worker


def test_a_loop_is_seen_with_its_queue_and_its_items_until_it_ends(queue, open_queue, background, gated, clock):
    ids = queue.enqueue_many(["a", "b"])
    future = background(queue.work, gated, concurrency=2)
    assert gated.begun.wait(30)
    with open_queue("mail") as other:
        worker = only(other)
        assert isinstance(worker, WorkerInfo)
        assert (worker.kind, worker.queues, worker.alive, worker.stopping) == ("work", ("ingest",), True, False)
        assert (worker.pid, worker.name) == (os.getpid(), f"{worker.host}:{worker.pid}")
        assert (worker.since, worker.since.tzinfo) == (clock.now, UTC)
        assert set(worker.item_ids) <= set(ids)
        assert worker.item_ids
        assert other.stats()["workers"] == [], "it does not serve this queue"
        assert [each.kind for each in queue.stats()["workers"]] == ["work"]
        gated.gate.set()
        ended(queue, future)
        assert other.workers() == []


@pytest.mark.parametrize("plan", [{}, {"exclusive": False}, {"limit": 1}, {"exclusive": False, "limit": 1}])
def test_a_drain_is_seen_while_it_runs(queue, plan):
    queue.enqueue("x")
    seen = []
    queue.drain(lambda item: seen.append(only(queue)), **plan)
    assert [(worker.kind, worker.item_ids, worker.alive) for worker in seen] == [("drain", (1,), True)]
    assert queue.workers() == []


def test_the_loops_of_asyncio_are_seen(aqueue):
    async def main():
        async with aqueue:
            await aqueue.enqueue("x")
            seen = []

            async def handler(item):
                seen.append((await aqueue.workers())[0])

            await aqueue.drain(handler)
            return seen, await aqueue.workers()

    (worker,), after = asyncio.run(main())
    assert (worker.kind, worker.item_ids, after) == ("drain", (1,), [])


def test_a_worker_is_known_by_its_name(open_queue):
    with open_queue(worker="crawler-1") as queue:
        queue.enqueue("x")
        queue.drain(lambda item: item.set_progress(1.0, only(queue).name))
        assert queue.get(1).progress_note == "crawler-1"


def test_who_holds_items_without_a_loop_is_seen_too(queue, open_queue, clock):
    queue.enqueue_many(["a", "b"])
    with open_queue(worker="by hand") as other:
        item = other.claim()
        clock.advance(5)
        worker = only(queue)
        assert (worker.name, worker.kind, worker.queues, worker.item_ids) == ("by hand", None, ("ingest",), (1,))
        assert (worker.alive, worker.pid, worker.since) == (True, None, item.started_at)
        other.release(item)
    assert queue.workers() == []


def test_who_holds_the_worker_lease_is_seen_once(queue, open_queue):
    with open_queue() as other:
        other.acquire_worker_lease()
        worker = only(queue)
        assert (worker.pid, worker.kind, worker.queues, worker.item_ids) == (os.getpid(), None, ("ingest",), ())
        queue.enqueue("x")
        item = other.claim()
        assert (only(queue).pid, only(queue).item_ids) == (os.getpid(), (1,))
        other.release(item)


def test_two_loops_are_two_workers_in_the_order_of_their_beginning(queue, open_queue, background, until, clock):
    with open_queue("mail") as mail:
        first = background(mail.work, nothing)
        until(lambda: len(queue.workers()) == 1)
        clock.advance(1)
        second = background(queue.work, nothing)
        until(lambda: len(queue.workers()) == 2)
        assert [worker.queues for worker in queue.workers()] == [("mail",), ("ingest",)]
        ended(queue, second)
        ended(mail, first)
    assert queue.workers() == []


@pytest.mark.parametrize("how", ["work", "drain"])
def test_a_killed_loop_is_seen_as_dead_until_its_item_is_reclaimed(queue, address, start, how):
    queue.enqueue("x")
    process = start(PROGRAMS / "hold.py", address, how, 3600)
    assert process.stdout.readline() == "held\n"
    worker = only(queue)
    assert (worker.pid, worker.kind, worker.alive, worker.item_ids) == (process.pid, how, True, (1,))
    process.kill()
    process.wait(30)
    worker = only(queue)
    assert (worker.kind, worker.alive, worker.item_ids) == (None, False, (1,))
    assert worker.name.endswith(f":{process.pid}")
    queue.mark_done(queue.claim())
    assert queue.workers() == []


def test_a_forked_child_is_not_the_loop_of_its_parent(queue, address, start, until):
    process = start(PROGRAMS / "fork_in_a_handler.py", address)
    queue.enqueue("x")
    child = int(process.stdout.readline())
    assert [worker.pid for worker in queue.workers()] == [process.pid]
    process.kill()
    process.wait(30)
    try:
        until(lambda: not queue.worker_is_alive())
        assert [worker.alive for worker in queue.workers()] == [False], "only what it held is left"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_loop_that_was_left_like_a_dying_process_is_not_seen(queue, membox_faults):
    queue.enqueue("x")
    membox_faults.crash_before("finish")
    with pytest.raises(SimulatedCrash):
        queue.drain(nothing, exclusive=False)
    assert [worker.kind for worker in queue.workers()] == [None]


def test_a_loop_that_works_is_a_live_worker_until_it_is_asked_to_stop(queue, open_queue, background, gated):
    with open_queue() as other, open_queue("mail") as mail:
        queue.enqueue("x")
        future = background(queue.work, gated)
        assert gated.begun.wait(30)
        assert other.worker_is_alive()
        assert other.stats()["worker_is_alive"]
        assert not mail.worker_is_alive()
        assert other.spawn_worker("loops_in_threads:nothing") is False
        queue.stop()
        assert not other.worker_is_alive(), "it claims no more"
        assert (only(other).stopping, only(other).item_ids) == (True, (1,))
        assert other._announce_worker(10), "another one may be started"
        gated.gate.set()
        assert future.result(30).done == 1


def test_a_loop_with_a_limit_may_end_before_it_looks_again_so_nobody_relies_on_it(queue, background, gated):
    queue.enqueue("x")
    background(queue.work, gated, limit=1)
    assert gated.begun.wait(30)
    assert not queue.worker_is_alive()
    assert only(queue).alive
    gated.gate.set()


def test_nobody_relies_on_a_loop_that_was_killed(queue, address, start):
    queue.enqueue("x")
    process = start(PROGRAMS / "hold.py", address, "work", 3600)
    assert process.stdout.readline() == "held\n"
    assert queue.worker_is_alive()
    process.kill()
    process.wait(30)
    assert not queue.worker_is_alive()
    assert queue._announce_worker(10)


def test_a_drain_that_was_stopped_for_long_is_seen_but_nobody_relies_on_it(queue, address, start, clock):
    queue.enqueue("x")
    process = start(PROGRAMS / "hold.py", address, "drain", 3600)
    assert process.stdout.readline() == "held\n"
    os.kill(process.pid, signal.SIGSTOP)
    assert queue.worker_is_alive()
    clock.advance(120)
    assert not queue.worker_is_alive(), "its lease has run out"
    assert [(worker.pid, worker.kind, worker.alive) for worker in queue.workers()] == [(process.pid, "drain", True)]


def test_a_loop_that_begins_ends_the_announcement_of_another(queue, background, until):
    assert queue._announce_worker(600)
    future = background(queue.work, nothing)
    until(queue.worker_is_alive)
    ended(queue, future)
    assert queue._announce_worker(10), "nobody is on the way any more"


@pytest.mark.parametrize("how", ["nothing was left", "its last item ended"])
def test_a_drain_leaves_in_the_transaction_that_finds_nothing_left(queue, how):
    queue.enqueue("x")
    loop = queue._begin_loop([], exclusive=False)
    assert queue.worker_is_alive()
    if how == "nothing was left":
        queue.mark_done(queue.claim())
        said = loop.next(0)
    else:
        assert loop.next(0).next == "work"
        said = loop.done(0, [None])
    assert said.next == "over"
    # The loop has not been closed yet: an enqueuer at this moment must not rely on it.
    assert not queue.worker_is_alive()
    assert queue.workers() == []
    loop.close()


def test_a_slot_that_waits_while_another_leaves_does_not_register_the_loop_again(queue):
    queue.enqueue("x")
    loop = queue._begin_loop([], exclusive=False, slots=2)
    assert loop.next(0).next == "work"
    assert loop.next(1).next == "wait"
    assert loop.done(0, [None]).next == "over"
    assert loop.wait(1, 0.0)
    assert not queue.worker_is_alive()
    loop.close()


def test_enqueuers_that_trust_a_drain_without_a_lease_leave_nothing_behind(queue, address, start):
    processes = [start(PROGRAMS / "enqueue_and_drain.py", address, "False") for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert (queue.pending(), queue.counts()["done"]) == (0, 400)
    assert queue.workers() == []
