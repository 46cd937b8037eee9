"""AsyncQueue among event loops, threads, forks and tasks: none of them is taken for granted."""

import asyncio
import contextlib
import contextvars
import inspect
import os
import pickle
import threading
from datetime import timedelta

import pytest
from in_asyncio import nothing
from membox_queue import AsyncItem, AsyncQueue, DrainReport, Item, Queue, QueueBusyError
from programs import PROGRAMS

asked_by = contextvars.ContextVar("asked_by", default="nobody")


SAME = [
    name
    for name in dir(Queue)
    if inspect.iscoroutinefunction(getattr(AsyncQueue, name, None)) and not name.startswith("_")
]


@pytest.mark.parametrize("name", SAME)
def test_a_verb_takes_here_what_it_takes_in_a_queue(name):
    def of(verb):
        known = inspect.signature(verb).parameters.values()
        return {(each.name, each.default) for each in known if each.name != "self" and each.kind != each.VAR_KEYWORD}

    here, there = of(getattr(AsyncQueue, name)), of(getattr(Queue, name))
    # Some pass options on by their names; none has arguments of its own.
    passes_on = name in ("enqueue", "enqueue_file", "configure", "drain", "work")
    assert here <= there if passes_on else here == there


def test_seconds_may_be_a_timedelta_everywhere(open_async_queue):
    async def main():
        short = timedelta(milliseconds=10)
        async with open_async_queue() as queue, open_async_queue() as other:
            assert await queue.claim(wait=short, lease=timedelta(seconds=5)) is None
            with pytest.raises(TimeoutError):
                await queue.wait(await queue.enqueue("x"), timeout=short)
            async with queue.lock("nightly", wait=short, ttl=timedelta(seconds=5)):
                with pytest.raises(QueueBusyError):
                    await other.lock("nightly", wait=short).__aenter__()

    asyncio.run(main())


def test_a_lock_is_taken_and_given_back_by_hand(open_async_queue):
    async def main():
        async with open_async_queue() as one, open_async_queue() as other:
            lock, rival = one.lock("nightly"), other.lock("nightly")
            assert (lock.name, lock.held, await lock.release()) == ("nightly", False, False)
            assert await lock.acquire()
            assert lock.held
            assert not await rival.acquire()
            assert await lock.release()
            assert await rival.acquire()

    asyncio.run(main())


# Event loops, threads and processes.


def test_event_loops_of_several_threads_share_one_object(open_async_queue, queue):
    aqueue = open_async_queue()
    together = threading.Barrier(6)
    failures = []

    async def enqueue():
        together.wait(20)
        await asyncio.gather(*(aqueue.enqueue("x") for _ in range(5)))

    def run():
        try:
            asyncio.run(asyncio.wait_for(enqueue(), 20))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert queue.pending() == 30
    asyncio.run(aqueue.close())


def test_an_object_that_was_used_before_a_fork_serves_the_child_too(address, queue, start):
    program = PROGRAMS / "fork_after_use.py"
    assert start(program, address).communicate(timeout=30)[0] == "0\n"
    assert [item.content for item in queue.items()] == ["parent", "child", "parent"]


def test_a_child_forked_after_a_loop_was_left_does_not_wait_for_its_parents_threads(address, queue, start):
    program = PROGRAMS / "fork_after_a_loop.py"
    queue.enqueue("x")
    assert start(program, address).communicate(timeout=30)[0] == "0\n"
    assert queue.counts()["pending"] == 2


def test_a_crowd_of_waits_leaves_neither_threads_nor_bells_behind(open_async_queue, until):
    def bells():
        found = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/self/fd/{name}"))
        return sum("eventfd" in link for link in found)

    async def main():
        async with open_async_queue() as aqueue:
            id = await aqueue.enqueue("x")
            before = threading.active_count()
            waiting = [asyncio.create_task(aqueue.wait(id)) for _ in range(150)]
            while bells() < 1:
                await asyncio.sleep(0.005)
            await aqueue.drain(nothing)
            await asyncio.gather(*waiting)
            # The watcher lets go of the file when nobody waits, and leaves soon after.
            await asyncio.to_thread(until, lambda: bells() == 0)
            await asyncio.to_thread(until, lambda: "membox-queue-watch" not in {t.name for t in threading.enumerate()})
            assert threading.active_count() < before + 10

    asyncio.run(asyncio.wait_for(main(), 60))


# Closing.


@pytest.mark.parametrize("handler", ["coroutine", "plain"])
def test_a_queue_that_is_closed_under_its_loop_gives_back_what_that_holds(open_async_queue, queue, handler):
    free = threading.Event()

    async def main():
        began = asyncio.Event()
        events = asyncio.get_running_loop()

        async def coroutine(item):
            began.set()
            await asyncio.Event().wait()

        def plain(item):
            events.call_soon_threadsafe(began.set)
            free.wait(20)

        async with open_async_queue() as aqueue:
            task = asyncio.create_task(aqueue.work({"coroutine": coroutine, "plain": plain}[handler]))
            await began.wait()
        assert queue.counts()["processing"] == 0
        return await task

    queue.enqueue_many(["a", "b"])
    try:
        assert asyncio.run(main()) == DrainReport(released=1, stopped=True)
    finally:
        free.set()


@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_a_queue_whose_loop_runs_in_no_event_loop_any_more_is_closed_all_the_same(address, queue, start, how):
    program = PROGRAMS / "close_after_the_event_loop.py"
    queue.enqueue("x")
    assert start(program, address, how).communicate(timeout=30)[0] == "closed\n"
    assert (queue.get(1).status, queue.get(1).retries, queue.get(1).error) == ("pending", 0, None)


def test_a_handler_may_close_its_queue(open_async_queue, queue):
    async def main():
        aqueue = open_async_queue()

        async def handler(item):
            await aqueue.close()

        return await asyncio.wait_for(aqueue.work(handler), 20)

    queue.enqueue("x")
    assert asyncio.run(main()) == DrainReport(released=1, stopped=True)


# What a handler may do to its task.


@pytest.mark.parametrize("kind", ["coroutine", "plain"])
def test_a_handler_sees_the_context_variables_of_the_caller_and_of_no_other_item(open_async_queue, queue, kind):
    queue.enqueue_many(["a", "b"])
    seen = []

    def plain(item):
        seen.append(asked_by.get())
        asked_by.set(item.content)

    async def coroutine(item):
        plain(item)

    async def main():
        asked_by.set("anna")
        async with open_async_queue() as aqueue:
            await aqueue.drain({"coroutine": coroutine, "plain": plain}[kind])

    asyncio.run(main())
    assert seen == ["anna", "anna"]


@pytest.mark.parametrize("swallowed", [False, True])
def test_a_handler_that_cancels_its_own_task_ends_neither_the_loop_nor_the_next_item(
    open_async_queue, queue, swallowed
):
    async def handler(item):
        if item.content == "self":
            asyncio.current_task().cancel()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                if not swallowed:
                    raise
        if item.content == "stray":
            raise asyncio.CancelledError

    async def main():
        async with open_async_queue() as aqueue:
            return await aqueue.drain(handler)

    queue.enqueue_many(["self", "stray", "ok"])
    assert asyncio.run(main()) == DrainReport(done=1 + swallowed, failed=2 - swallowed)


def test_a_plain_handler_may_raise_even_a_stop_iteration(open_async_queue, queue):
    async def main():
        async with open_async_queue() as aqueue:
            return await asyncio.wait_for(aqueue.drain(lambda item: next(iter(()))), 20)

    queue.enqueue("x")
    assert asyncio.run(main()) == DrainReport(failed=1)
    assert queue.get(1).error.startswith("StopIteration")


@pytest.mark.parametrize("batch", [None, "group"])
def test_a_plain_handler_runs_in_a_thread_also_inside_middleware_that_is_awaited(open_async_queue, queue, batch):
    queue.enqueue("x", group="g")
    seen = []

    async def middleware(argument, call_next):
        seen.append(argument)
        return f"outer({await call_next(argument)})"

    def handler(argument):
        seen.append(argument)
        assert threading.current_thread() is not threading.main_thread()
        return "r"

    async def main():
        async with open_async_queue() as aqueue:
            return await aqueue.drain(handler, middleware=[middleware], batch=batch)

    assert asyncio.run(main()) == DrainReport(done=1)
    outer, inner = (each[0] if batch else each for each in seen)
    assert (type(outer), type(inner)) == (AsyncItem, Item)
    assert queue.get(1).result == "outer(r)"


# Cancelling what waits for others.


def test_a_wait_for_room_is_cancelled_at_once_and_keeps_no_verb_from_its_turn(open_async_queue):
    async def main():
        async with open_async_queue(max_pending=1) as aqueue:
            await aqueue.enqueue("first")
            waiting = [asyncio.create_task(aqueue.enqueue("more", wait=60)) for _ in range(40)]
            await asyncio.sleep(0.05)
            assert await asyncio.wait_for(aqueue.pending(), 10) == 1
            for task in waiting:
                task.cancel()
            await asyncio.wait_for(asyncio.wait(waiting), 20)
            assert all(task.cancelled() for task in waiting)
            assert await aqueue.pending() == 1

    asyncio.run(main())


def test_its_name_is_told_and_it_can_be_sent_to_another_process(open_async_queue):
    queue = open_async_queue("emails", max_retries=7)
    assert repr(queue).startswith("<AsyncQueue 'emails' in ")
    again = pickle.loads(pickle.dumps(queue))
    assert (repr(again), again.name, again._given) == (repr(queue), "emails", {"max_retries": 7})


@pytest.mark.parametrize("kind", ["coroutine", "plain"])
@pytest.mark.parametrize(("error", "counted"), [(SystemExit, 1), (KeyboardInterrupt, 0)])
def test_a_handler_that_ends_the_program_gives_its_item_back(open_async_queue, queue, kind, error, counted):
    def plain(item):
        raise error

    async def coroutine(item):
        raise error

    async def main():
        async with open_async_queue() as aqueue:
            await aqueue.drain({"coroutine": coroutine, "plain": plain}[kind], concurrency=2)

    queue.enqueue("x")
    with pytest.raises(error):
        asyncio.run(main())
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", counted)
    assert not queue.worker_is_alive()


@pytest.mark.parametrize("verb", ["drain", "work"])
def test_a_loop_whose_task_has_not_had_its_turn_yet_can_be_stopped(open_async_queue, queue, verb):
    async def main():
        async with open_async_queue() as aqueue:
            running = asyncio.create_task(getattr(aqueue, verb)(lambda item: None))
            aqueue.stop()
            assert await asyncio.wait_for(running, 30) == DrainReport(stopped=True)
            assert await aqueue.drain(lambda item: None) == DrainReport(done=1)

    queue.enqueue("x")
    asyncio.run(main())
