"""AsyncQueue: the same verbs, awaited; cancellation gives items back, and no verb blocks the event loop."""

import asyncio
import inspect
import math
import signal
import threading
import time
from datetime import timedelta

import pytest
from in_asyncio import becomes, cancelled, in_loop, nothing
from membox_queue import (
    AsyncItem,
    AsyncQueue,
    DrainReport,
    GiveUp,
    NewItem,
    Queue,
    QueueBusyError,
    QueueClosedError,
    RetryLater,
    StaleClaimError,
)

NOT_AWAITED = ("stop", "lock", "handler", "worker")
VERBS = [
    name
    for name in dir(Queue)
    if not name.startswith("_") and callable(getattr(Queue, name)) and name not in NOT_AWAITED
]


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_of_a_queue_is_there_and_is_awaited(name):
    verb = getattr(AsyncQueue, name)
    # A loop is known when it is asked for, so that it can be stopped before its first turn; what comes back is awaited.
    assert inspect.iscoroutinefunction(verb) or verb.__annotations__["return"].startswith("Coroutine[")


def test_what_a_queue_says_of_itself_it_says_here_too(open_async_queue):
    async def main():
        async with open_async_queue("emails") as queue:
            assert (queue.name, queue.type, queue.closed) == ("emails", None, False)
            assert not await queue.is_paused()
            await queue.pause()
            assert await queue.is_paused()
        assert queue.closed

    asyncio.run(main())


def test_a_lock_is_entered_and_left_without_blocking_the_event_loop(open_async_queue):
    async def main():
        async with open_async_queue() as one, open_async_queue() as other:
            async with one.lock("nightly", ttl=timedelta(seconds=30), wait=timedelta(0)) as lock:
                assert lock.held
                assert not lock.lost
                with pytest.raises(QueueBusyError, match="nightly"):
                    await other.lock("nightly").__aenter__()
                waiting = asyncio.ensure_future(other.lock("nightly", wait=30).__aenter__())
                await asyncio.sleep(0)
                assert not waiting.done()
            assert not (await waiting).lost

    asyncio.run(main())


def test_a_wait_for_a_lock_can_be_cancelled_and_leaves_it_free(open_async_queue):
    async def main():
        async with open_async_queue() as one, open_async_queue() as other:
            async with one.lock("nightly"):
                waiting = asyncio.ensure_future(other.lock("nightly", wait=math.inf).__aenter__())
                await asyncio.sleep(0.05)
                await asyncio.wait_for(cancelled(waiting), 10)
            async with one.lock("nightly"):
                pass

    asyncio.run(main())


@in_loop
async def test_the_verbs_do_what_they_do_in_a_queue(aqueue):
    async with aqueue as queue:
        assert await queue.enqueue("a", priority=1) == 1
        assert await queue.enqueue_many(["b", NewItem("c", group="g")]) == [2, 3]
        item = await queue.claim()
        assert isinstance(item, AsyncItem)
        assert (item.content, item.attempt, item.lost) == ("a", 1, False)
        assert await item.set_progress(0.5, "half")
        assert not await item.is_lost()
        assert not await item.is_cancelled()
        await item.check()
        assert await queue.extend(item, 90)
        assert await queue.mark_done(item, result={"r": 1})
        assert (await queue.get(1)).result == {"r": 1}
        two = await queue.claim_many(5)
        assert [item.content for item in two] == ["b", "c"]
        assert await queue.release(two[1])
        assert await queue.mark_failed(two[0], LookupError("no"))
        assert await queue.claim_group("nobody", limit=5) == []
        [third] = await queue.claim_group()
        assert await queue.mark_done_many([third]) == 1
        assert (await queue.counts())["done"] == 2
        assert [item.error for item in await queue.failures()] == ["LookupError: no"]
        assert await queue.claim(wait=0.01) is None
        assert (await queue.wait(2, timeout=5)).status == "failed"
        with pytest.raises(TimeoutError):
            await queue.wait(await queue.enqueue("d"), timeout=0.01)


@in_loop
async def test_calls_after_close_are_refused_and_closing_twice_is_closing_once(aqueue):
    await aqueue.enqueue("x")
    await aqueue.close()
    await aqueue.close()
    with pytest.raises(QueueClosedError):
        await aqueue.enqueue("y")


@in_loop
async def test_a_queue_that_was_closed_before_it_was_used_stays_closed(aqueue, engine):
    await aqueue.close()
    with pytest.raises(QueueClosedError):
        await aqueue.enqueue("y")
    assert not engine.exists()


@in_loop
async def test_many_waits_do_not_keep_other_verbs_from_running(aqueue):
    async with aqueue as queue:
        claims = [asyncio.create_task(queue.claim(wait=math.inf)) for _ in range(40)]
        await asyncio.sleep(0.2)
        await asyncio.wait_for(queue.enqueue_many(range(40)), 10)
        items = await asyncio.wait_for(asyncio.gather(*claims), 20)
        assert sorted(item.content for item in items) == list(range(40))


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


class PanicException(BaseException):
    """As native code raises it that panics: no `Exception`."""


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


class HostileError(Exception):
    """Every attribute that a report could ask for raises."""

    def refuse(self, *_):
        raise LookupError("no attribute for you")

    __str__ = __repr__ = add_note = with_traceback = refuse
    __class__ = __cause__ = __context__ = __traceback__ = __notes__ = property(refuse)


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
@pytest.mark.parametrize(
    ("error", "status", "retries"),
    [
        (PanicException, "failed", 1),
        (asyncio.CancelledError, "failed", 1),
        (HostileError, "failed", 1),
        (GeneratorExit, "pending", 0),
        (SystemExit, "pending", 1),
    ],
)
async def test_what_a_block_raises_by_itself_means_what_it_means_in_with(aqueue, queue, error, status, retries):
    queue.enqueue("x")
    item = await aqueue.claim()
    await item.__aenter__()
    await item.__aexit__(error, error(), None)
    assert (queue.get(1).status, queue.get(1).retries) == (status, retries)


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
async def test_async_for_yields_claims_that_async_with_ends(aqueue, queue):
    queue.enqueue_many(["ok", "bad", "last"])
    async for item in aqueue:
        try:
            async with item:
                assert queue.get(item.id).status == "processing"
                if item.content == "bad":
                    raise LookupError("no")
        except LookupError:
            pass
        if item.content == "last":
            break
    assert [item.status for item in queue.items()] == ["done", "failed", "done"]


@in_loop
async def test_async_for_waits_for_items_to_come(aqueue, queue):
    got = asyncio.Queue()

    async def consume():
        async for item in aqueue:
            async with item:
                got.put_nowait(item.content)

    task = asyncio.create_task(consume())
    for number in range(3):
        await asyncio.sleep(0.01)
        queue.enqueue(number)
        assert await got.get() == number
    await cancelled(task)
    await becomes(lambda: queue.counts()["done"] == 3)


def test_a_claim_of_async_for_is_renewed_until_its_end(open_async_queue, clock, queue):
    async def main():
        async with open_async_queue(lease=0.3) as short:
            async for item in short:
                for _ in range(3):
                    clock.advance(0.29)
                    await becomes(
                        lambda: queue.get(1).lease_until == clock.now + timedelta(seconds=0.4)
                    )  # and a beat of grace
                async with item:
                    assert not await item.is_lost()
                return

    queue.enqueue("x")
    asyncio.run(main())
    assert (queue.get(1).status, queue.get(1).attempt) == ("done", 1)


def test_an_item_that_async_for_yielded_and_nobody_ended_is_given_back(open_async_queue, queue):
    async def main():
        async with open_async_queue() as aqueue:
            consuming = aiter(aqueue)
            assert (await anext(consuming)).content == "x"
            await consuming.aclose()
            assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)

    queue.enqueue("x")
    asyncio.run(main())


@in_loop
async def test_async_with_ends_a_claim_like_with(aqueue, queue):
    queue.enqueue_many(["ok", "bad", "later", "own"])
    async with await aqueue.claim() as item:
        assert isinstance(item, AsyncItem)
    with pytest.raises(LookupError):
        async with await aqueue.claim():
            raise LookupError("no")
    with pytest.raises(RetryLater):
        async with await aqueue.claim():
            raise RetryLater(60)
    async with await aqueue.claim() as item:
        await aqueue.mark_done(item, result="mine")
    found = [(item.status, item.retries, item.result) for item in queue.items()]
    assert found == [("done", 0, None), ("failed", 1, None), ("pending", 1, None), ("done", 0, "mine")]


@in_loop
async def test_a_lost_claim_is_noticed_on_leaving(aqueue, queue, clock):
    queue.enqueue("x")

    async def work():
        async with await aqueue.claim() as item:
            clock.advance(61)
            assert queue.claim().attempt == 2
            assert await item.is_lost()
            assert item.lost
            with pytest.raises(StaleClaimError):
                await item.check()

    with pytest.raises(StaleClaimError):
        await work()


@in_loop
async def test_an_async_item_is_no_plain_context_manager_and_asks_nothing_in_the_event_loop(aqueue, queue):
    queue.enqueue("x")
    item = await aqueue.claim()
    with pytest.raises(AttributeError, match="is_cancelled"):
        item.cancelled  # noqa: B018
    with pytest.raises((TypeError, AttributeError)), item:
        pass
    assert queue.get(1).status == "processing"


# Cancellation.


@in_loop
async def test_a_cancelled_claim_leaves_nothing_claimed(aqueue, queue):
    await aqueue.pending()
    task = asyncio.create_task(aqueue.claim(wait=math.inf))
    await asyncio.sleep(0.02)
    started = time.monotonic()
    await cancelled(task)
    assert time.monotonic() - started < 5
    queue.enqueue("x")
    item = await aqueue.claim(wait=5)
    assert item.attempt == 1


@pytest.mark.parametrize("kind", ["claim", "claim_many", "claim_group", "wait"])
@in_loop
async def test_a_wait_that_is_cancelled_ends_at_once(aqueue, queue, kind):
    if kind == "wait":
        waiting = aqueue.wait(queue.enqueue("x"))
    elif kind == "claim_many":
        waiting = aqueue.claim_many(3, wait=math.inf)
    else:
        waiting = getattr(aqueue, kind)(wait=math.inf)
    task = asyncio.create_task(waiting)
    if kind == "wait":
        await asyncio.sleep(0.05)
    else:
        await asyncio.sleep(0.02)
    started = time.monotonic()
    await cancelled(task)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("steps", range(12))
@pytest.mark.parametrize("verb", ["claim", "claim_many", "async for", "drain"])
@in_loop
async def test_whenever_a_claim_is_cancelled_its_items_are_back_before_it_has_ended(
    open_async_queue, queue, verb, steps
):
    queue.enqueue_many(range(3))
    async with open_async_queue() as aqueue:
        await aqueue.pending()

        async def take():
            if verb == "claim":
                return [await aqueue.claim(wait=5)]
            if verb == "claim_many":
                return await aqueue.claim_many(3)
            if verb == "drain":
                await aqueue.drain(nothing, concurrency=2)
                return []
            async for item in aqueue:
                async with item:
                    return []

        task = asyncio.create_task(take())
        for _ in range(steps):
            await asyncio.sleep(0)
        # Again and again: somebody who is impatient must not cost an item either.
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        counts = queue.counts()
        taken = 0 if task.cancelled() else len(task.result())
        assert counts["processing"] == taken
        assert counts["failed"] == 0
        assert not queue.worker_is_alive()


@pytest.mark.parametrize("handler", ["coroutine", "plain"])
@pytest.mark.parametrize("impatient", [False, True])
@pytest.mark.parametrize("verb", ["drain", "work"])
@in_loop
async def test_a_cancelled_loop_has_given_everything_back_when_it_ends(aqueue, queue, verb, impatient, handler):
    queue.enqueue_many(range(8))
    running = []
    free = threading.Event()

    async def coroutine(item):
        running.append(item)
        await asyncio.Event().wait()

    def plain(item):
        running.append(item)
        free.wait(20)

    handlers = {"coroutine": coroutine, "plain": plain}
    task = asyncio.create_task(getattr(aqueue, verb)(handlers[handler], concurrency=3))
    await becomes(lambda: len(running) == 3)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, free.set)
    while impatient and not task.done():
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = queue.counts()
    assert (found["pending"], found["processing"]) == (8, 0)
    assert {item.retries for item in queue.items()} == {0}
    assert not queue.worker_is_alive()


@in_loop
async def test_an_async_with_block_that_is_cancelled_gives_its_item_back_first(aqueue, queue):
    queue.enqueue("x")
    inside = asyncio.Event()

    async def consume():
        async for item in aqueue:
            async with item:
                inside.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(consume())
    await inside.wait()
    await cancelled(task)
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)


@in_loop
async def test_a_timeout_around_a_claim_costs_nothing(aqueue, queue):
    for _ in range(20):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.003):
                await aqueue.claim(wait=30)
    queue.enqueue("x")
    assert (await aqueue.claim(wait=5)).attempt == 1


async def storm(address, queue, rounds):
    """Workers and claims that come and are cancelled while items go through; every item is handled in the end."""
    total = rounds * 5
    async with AsyncQueue(address) as aqueue:

        async def handler(item):
            await asyncio.sleep(0)

        for number in range(rounds):
            queue.enqueue_many(range(5))
            tasks = [asyncio.create_task(aqueue.drain(handler, exclusive=False, concurrency=3)) for _ in range(2)]
            tasks += [asyncio.create_task(aqueue.claim(wait=30)) for _ in range(2)]
            for _ in range(number % 17):
                await asyncio.sleep(0)
            while not all(task.done() for task in tasks):
                for task in tasks:
                    task.cancel()
                await asyncio.sleep(0 if number % 2 else 0.001)
            for task in tasks[2:]:
                if not task.cancelled():
                    assert await aqueue.mark_done(task.result())
            assert queue.counts()["processing"] == 0, f"round {number}"
        await aqueue.drain(handler, concurrency=3)
    assert queue.counts()["done"] == total
    assert {item.retries for item in queue.items(limit=total)} == {0}


@in_loop
async def test_a_storm_of_cancellations_loses_and_counts_nothing(address, queue):
    await storm(address, queue, 40)


@pytest.mark.proof
def test_a_long_storm_of_cancellations_loses_and_counts_nothing(address, queue):
    asyncio.run(storm(address, queue, 2000))


# The event loop.


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


def test_one_object_serves_one_event_loop_after_another(open_async_queue):
    queue = open_async_queue()
    assert asyncio.run(queue.enqueue("a")) == 1
    assert asyncio.run(queue.drain(nothing)) == DrainReport(done=1)
    asyncio.run(queue.close())


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
