"""AsyncQueue: the same verbs, awaited; none blocks the event loop."""

import asyncio
import inspect
import math
from datetime import timedelta

import pytest
from in_asyncio import HostileError, PanicException, cancelled, in_loop, nothing
from membox_queue import (
    AsyncItem,
    AsyncQueue,
    DrainReport,
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
async def test_an_async_item_is_no_plain_context_manager_and_does_not_block_the_loop(aqueue, queue):
    queue.enqueue("x")
    item = await aqueue.claim()
    with pytest.raises(AttributeError, match="is_cancelled"):
        item.cancelled  # noqa: B018
    with pytest.raises((TypeError, AttributeError)), item:
        pass
    assert queue.get(1).status == "processing"


def test_one_object_serves_one_event_loop_after_another(open_async_queue):
    queue = open_async_queue()
    assert asyncio.run(queue.enqueue("a")) == 1
    assert asyncio.run(queue.drain(nothing)) == DrainReport(done=1)
    asyncio.run(queue.close())
