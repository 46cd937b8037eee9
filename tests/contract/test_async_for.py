"""async for: renewed claims, one after another; whichever way the loop is left, nothing stays in hand."""

import asyncio
import contextlib
import gc
from datetime import timedelta

import pytest
from in_asyncio import becomes, cancelled, in_loop


async def leave(how, queue, told):
    """Take one item in a loop and leave it in one of the ways there are."""
    async for item in queue:
        told.append(item.id)
        if how == "break":
            break
        if how == "return":
            return
        if how == "raise":
            raise LookupError
        await asyncio.Event().wait()


async def left(how, queue):
    """Leave a loop, and be back."""
    told = []
    task = asyncio.create_task(leave(how, queue, told))
    while not told:
        await asyncio.sleep(0.001)
    if how == "cancel":
        task.cancel()
    with contextlib.suppress(LookupError, asyncio.CancelledError):
        await task


@pytest.mark.parametrize("how", ["break", "return", "raise", "cancel"])
def test_whoever_has_left_a_loop_finds_its_item_given_back(open_async_queue, queue, how):
    async def main():
        async with open_async_queue() as aqueue:
            await left(how, aqueue)
            assert (await aqueue.counts())["processing"] == 0
            return await aqueue.claim()

    queue.enqueue("x")
    assert (asyncio.run(main()).attempt, queue.get(1).retries) == (2, 0)


@pytest.mark.parametrize("how", ["break", "return", "raise", "cancel"])
def test_a_queue_that_is_closed_after_a_loop_was_left_has_given_its_item_back(open_async_queue, queue, how):
    async def main():
        async with open_async_queue() as aqueue:
            await left(how, aqueue)

    queue.enqueue("x")
    asyncio.run(main())
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)


@pytest.mark.parametrize("when", ["while it runs", "when it is closed"])
def test_a_loop_that_was_left_gives_its_item_back_by_itself(open_async_queue, queue, until, when):
    kept = []

    async def main():
        aqueue = open_async_queue()
        loop = aiter(aqueue)
        await anext(loop)
        if when == "when it is closed":
            kept.append(loop)

    queue.enqueue("x")
    asyncio.run(main())
    kept.clear()
    gc.collect()
    until(lambda: queue.get(1).status == "pending")
    assert [attempt.ending for attempt in queue.history(1)] == ["released"]


def test_a_loop_that_was_closed_is_over(open_async_queue, queue):
    async def main():
        async with open_async_queue() as aqueue, contextlib.aclosing(aiter(aqueue)) as items:
            first = await anext(items)
            await items.aclose()
            assert queue.get(first.id).status == "pending"
            with pytest.raises(StopAsyncIteration):
                await anext(items)

    queue.enqueue("x")
    asyncio.run(main())


def test_two_tasks_need_a_loop_each(open_async_queue, queue):
    async def main():
        async with open_async_queue() as aqueue:
            items = aiter(aqueue)
            waiting = asyncio.create_task(anext(items))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="a loop of its own"):
                await anext(items)
            queue.enqueue("x")
            async with await waiting as item:
                assert item.content == "x"

    asyncio.run(main())
    assert queue.get(1).status == "done"


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
