"""Cancellation in asyncio: what is cancelled has given its items back when it ends."""

import asyncio
import math
import threading
import time

import pytest
from in_asyncio import becomes, cancelled, in_loop, nothing
from membox_queue import (
    AsyncQueue,
)


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
