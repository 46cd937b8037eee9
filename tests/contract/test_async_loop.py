"""Loops in asyncio: handlers that are awaited, and plain ones in threads."""

import asyncio
import signal
import threading

import pytest
from in_asyncio import HostileError, PanicException, becomes, in_loop, nothing
from membox_queue import (
    AsyncItem,
    DrainReport,
    GiveUp,
    NewItem,
    RetryLater,
)


@in_loop
async def test_a_coroutine_handler_is_awaited_in_the_event_loop(aqueue, queue):
    queue.enqueue_many(["a", "b"])
    loops = set()

    async def handler(item):
        loops.add((asyncio.get_running_loop(), threading.current_thread()))
        await asyncio.sleep(0)
        assert isinstance(item, AsyncItem)
        return item.content.upper()

    assert await aqueue.drain(handler) == DrainReport(done=2)
    assert loops == {(asyncio.get_running_loop(), threading.current_thread())}
    assert [item.result for item in queue.items()] == ["A", "B"]
    assert not queue.worker_is_alive()


@in_loop
async def test_a_plain_handler_runs_in_a_thread(aqueue, queue):
    queue.enqueue("a")
    threads = []

    def handler(item):
        threads.append(threading.current_thread())
        assert not item.lost
        return item.content.upper()

    assert await aqueue.drain(handler) == DrainReport(done=1)
    assert threads[0] is not threading.current_thread()
    assert queue.get(1).result == "A"


@in_loop
async def test_a_plain_function_that_returns_an_awaitable_is_awaited(aqueue, queue):
    queue.enqueue("a")

    async def work(item):
        return "worked"

    assert await aqueue.drain(lambda item: work(item)) == DrainReport(done=1)
    assert queue.get(1).result == "worked"


@in_loop
async def test_coroutine_handlers_really_overlap(aqueue, queue):
    queue.enqueue_many(range(8))
    running, all_there = 0, asyncio.Event()

    async def handler(item):
        nonlocal running
        running += 1
        if running == 8:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 20)

    assert await aqueue.drain(handler, concurrency=8) == DrainReport(done=8)


@in_loop
async def test_plain_handlers_really_overlap(aqueue, queue):
    queue.enqueue_many(range(4))
    together = threading.Barrier(4)
    assert await aqueue.drain(lambda item: together.wait(20) and None, concurrency=4) == DrainReport(done=4)


@in_loop
async def test_no_more_items_are_handled_at_once_than_there_are_slots(aqueue, queue):
    queue.enqueue_many(range(12))
    running, most = 0, 0

    async def handler(item):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    assert await aqueue.drain(handler, concurrency=3) == DrainReport(done=12)
    assert most == 3


@in_loop
@pytest.mark.parametrize("kind", ["coroutine", "plain"])
async def test_a_panic_of_native_code_is_a_failure_and_the_loop_goes_on(aqueue, queue, kind):
    queue.enqueue_many(["poison", "sound"])

    def plain(item):
        if item.id == 1:
            raise PanicException("index out of bounds")

    async def coroutine(item):
        plain(item)

    assert await aqueue.drain({"plain": plain, "coroutine": coroutine}[kind]) == DrainReport(done=1, failed=1)


@in_loop
@pytest.mark.parametrize("kind", ["coroutine", "plain", "middleware"])
@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError, StopIteration, HostileError])
async def test_whatever_a_handler_raises_by_itself_fails_its_item_and_the_loop_goes_on(aqueue, queue, kind, error):
    if kind == "coroutine" and error is StopIteration:
        pytest.skip("Python makes a RuntimeError of it")
    queue.enqueue("poison", max_retries=2)
    queue.enqueue("sound")

    def plain(item):
        if item.id == 1:
            raise error

    async def coroutine(item):
        plain(item)

    async def around(item, call_next):
        return await call_next(item)

    middleware = [around] if kind == "middleware" else []
    handler = coroutine if kind == "coroutine" else plain
    assert await aqueue.drain(handler, middleware=middleware) == DrainReport(done=1, failed=1)
    assert (queue.get(1).attempt, queue.get(1).retries) == (1, 1)
    assert not queue.worker_is_alive()


@in_loop
async def test_failures_are_recorded_and_the_loop_goes_on(aqueue, queue):
    queue.enqueue_many(["fail", "later", "give up", "ok"])
    told = []

    async def handler(item):
        if item.content == "fail":
            raise LookupError("no")
        if item.content == "later":
            raise RetryLater(60)
        if item.content == "give up":
            raise GiveUp("hopeless")

    def on_error(error, item, phase):
        told.append((type(error), item.id, phase))
        raise RuntimeError("isolated")

    report = await aqueue.drain(handler, on_error=on_error)
    assert report == DrainReport(done=1, failed=2, postponed=1)
    assert told == [(LookupError, 1, "handler"), (RetryLater, 2, "handler"), (GiveUp, 3, "handler")]


@in_loop
async def test_middleware_goes_around_a_coroutine_handler(aqueue, queue):
    queue.enqueue("x")
    calls = []

    async def outer(item, call_next):
        calls.append("outer")
        return f"outer({await call_next(item)})"

    def inner(item, call_next):
        calls.append("inner")
        return call_next(item)

    async def handler(item):
        calls.append("handler")
        return "r"

    assert await aqueue.drain(handler, middleware=[outer, inner]) == DrainReport(done=1)
    assert calls == ["outer", "inner", "handler"]
    assert queue.get(1).result == "outer(r)"


@in_loop
async def test_a_batch_is_a_list_of_items(aqueue, queue):
    queue.enqueue_many(NewItem(name, group="g") for name in "ab")

    async def handler(items):
        return [item.content.upper() for item in items]

    assert await aqueue.drain(handler, batch="group") == DrainReport(done=2)
    assert [item.result for item in queue.items()] == ["A", "B"]


@in_loop
async def test_another_live_worker_means_refused(aqueue, queue):
    queue.enqueue("x")
    queue.acquire_worker_lease()
    assert await aqueue.drain(nothing) == DrainReport(refused=True)
    assert await aqueue.drain(nothing, exclusive=False) == DrainReport(done=1)


@in_loop
async def test_an_argument_that_is_none_of_drains_is_refused(aqueue):
    with pytest.raises(TypeError):
        await aqueue.drain(nothing, concurency=3)


@in_loop
async def test_work_handles_what_comes_until_it_is_stopped(aqueue, queue):
    handled = []

    async def handler(item):
        handled.append(item.content)

    task = asyncio.create_task(aqueue.work(handler, concurrency=2))
    for number in range(3):
        queue.enqueue(number)
        await becomes(lambda number=number: queue.counts()["done"] == number + 1)
    aqueue.stop()
    assert await task == DrainReport(done=3, stopped=True)
    assert handled == [0, 1, 2]


@pytest.mark.parametrize("concurrency", [2, 8])
@in_loop
async def test_idle_slots_still_hear_of_new_items_after_looks_that_found_nothing(aqueue, queue, concurrency):
    task = asyncio.create_task(aqueue.work(nothing, concurrency=concurrency))
    for done in range(1, 6):
        # Each rings the bell, and each slot looks in vain.
        for _ in range(5):
            queue.enqueue("not yet", delay=3600)
            await asyncio.sleep(0.002)
        queue.enqueue("now")
        await becomes(lambda done=done: queue.counts()["done"] == done)
    aqueue.stop()
    assert (await task).done == 5


@in_loop
async def test_a_stopped_loop_lets_what_runs_end_within_the_grace(aqueue, queue):
    queue.enqueue_many(["a", "b"])
    began, free = asyncio.Event(), asyncio.Event()

    async def handler(item):
        began.set()
        await free.wait()

    task = asyncio.create_task(aqueue.work(handler, grace=30))
    await began.wait()
    aqueue.stop()
    await asyncio.sleep(0.05)
    assert not task.done()
    free.set()
    assert await task == DrainReport(done=1, stopped=True)
    assert queue.get(2).attempt == 0


@in_loop
async def test_what_runs_when_the_grace_is_over_is_given_back_uncounted(aqueue, queue):
    queue.enqueue("a")
    began = asyncio.Event()

    async def handler(item):
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(aqueue.work(handler, grace=0.01))
    await began.wait()
    aqueue.stop()
    assert await task == DrainReport(released=1, stopped=True)
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)


@in_loop
async def test_a_plain_handler_that_outlives_the_grace_does_not_hold_its_item(aqueue, queue):
    queue.enqueue("a")
    began, free = threading.Event(), threading.Event()

    def handler(item):
        began.set()
        free.wait(20)

    task = asyncio.create_task(aqueue.work(handler, grace=0.01))
    try:
        await becomes(began.is_set)
        aqueue.stop()
        assert await asyncio.wait_for(task, 10) == DrainReport(released=1, stopped=True)
        assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)
    finally:
        free.set()


@in_loop
async def test_a_linger_and_a_limit_mean_the_same_here(aqueue, queue, clock):
    queue.enqueue_many(["now", NewItem("soon", delay=30), "not taken"])
    task = asyncio.create_task(aqueue.drain(nothing, linger=60, limit=3))
    await becomes(lambda: queue.counts()["done"] == 2)
    assert queue.worker_is_alive()
    clock.advance(30)
    assert await task == DrainReport(done=3)


@in_loop
async def test_no_signal_handler_is_installed(aqueue, queue):
    queue.enqueue("x")
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    during = []

    async def handler(item):
        during.extend(signal.getsignal(number) for number in numbers)

    await aqueue.drain(handler)
    assert during == before
    assert [signal.getsignal(number) for number in numbers] == before


@in_loop
async def test_two_loops_may_run_on_one_object(aqueue, queue):
    queue.enqueue_many(range(2))
    running, both = 0, asyncio.Event()

    async def handler(item):
        nonlocal running
        running += 1
        if running == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 20)

    tasks = [asyncio.create_task(aqueue.work(handler)) for _ in range(2)]
    await both.wait()
    aqueue.stop()
    assert [report.done for report in await asyncio.gather(*tasks)] == [1, 1]


@pytest.mark.parametrize("kind", ["coroutine", "plain"])
def test_an_item_whose_handler_always_leaves_the_program_comes_to_rest_as_failed(open_queue, open_async_queue, kind):
    async def coroutine(item):
        raise SystemExit(7)

    def plain(item):
        raise SystemExit(7)

    async def main():
        async with open_async_queue() as queue:
            await queue.drain({"coroutine": coroutine, "plain": plain}[kind])

    with open_queue() as queue:
        queue.enqueue("x")
        for retries in (1, 2, 3):
            with pytest.raises(SystemExit):
                asyncio.run(main())
            assert (queue.get(1).retries, queue.get(1).error) == (retries, "SystemExit: 7")
        assert queue.get(1).status == "failed"


@in_loop
async def test_a_coroutine_learns_that_its_loop_was_asked_to_stop(aqueue):
    started = asyncio.Event()

    async def in_steps(item):
        started.set()
        while not item.stopping:
            await asyncio.sleep(0.001)
        return "ended early"

    qid = await aqueue.enqueue("x")
    working = asyncio.create_task(aqueue.work(in_steps))
    await started.wait()
    aqueue.stop()
    assert (await asyncio.wait_for(working, 30)).done == 1
    assert (await aqueue.get(qid)).result == "ended early"
