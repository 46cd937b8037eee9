"""Ends in the caller's own transaction, on connections that are awaited, by AsyncQueue and AsyncItem."""

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing, suppress

import pytest
from membox_queue import AsyncQueue, StaleClaimError
from membox_queue.loops.loop import running

from sqlite.libraries import write


@asynccontextmanager
async def asynchronous_connection(path, kind):
    """A connection to be awaited; `commit`, `rollback` and `execute` are awaited, too."""
    pytest.importorskip("aiosqlite")
    if kind == "aiosqlite":
        import aiosqlite

        async with aiosqlite.connect(path) as connection:
            yield connection
        return
    pytest.importorskip("greenlet")
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")
    engine = asynchronous.create_async_engine(f"sqlite+aiosqlite:///{path}")
    try:
        async with asynchronous.AsyncSession(engine) if kind == "session" else engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


async def awaited_write(connection, text):
    if hasattr(connection, "run_sync"):
        await connection.run_sync(write, text)
    else:
        await connection.execute(f"INSERT INTO effects VALUES ('{text}')")


@pytest.fixture(params=["aiosqlite", "connection", "session"])
def run_async(request, path, queue):
    """Run a coroutine function with an AsyncQueue and a connection."""

    def run_async(test):
        async def main():
            async with AsyncQueue(path) as awaited, asynchronous_connection(path, request.param) as connection:
                await test(awaited, connection)

        asyncio.run(main())

    return run_async


def test_awaited_verbs_are_committed_and_rolled_back_with_the_caller(queue, run_async, effects):
    async def test(awaited, connection):
        await awaited.enqueue_many(["a", "b"])
        item = await awaited.claim()
        await awaited_write(connection, "undone")
        await awaited.mark_done(item, 1, connection=connection)
        await connection.rollback()
        assert (await awaited.get(item.id)).status == "processing"
        await awaited_write(connection, "one")
        await awaited.mark_done(item, 1, connection=connection)
        await awaited.cancel(2, connection=connection)
        await awaited.enqueue("c", connection=connection)
        await connection.commit()
        with pytest.raises(StaleClaimError):
            await awaited.mark_done(item, connection=connection)
        await connection.rollback()

    run_async(test)
    assert effects() == ["one"]
    assert [item.status for item in queue.items()] == ["done", "cancelled", "pending"]


def test_async_with_item_transaction(queue, run_async, effects):
    async def test(awaited, connection):
        await awaited.enqueue_many(["a", "b", "c", "d"])
        item = await awaited.claim()
        async with item.transaction(connection) as inside:
            assert inside is item
            await awaited_write(connection, "one")
        item = await awaited.claim()
        with suppress(LookupError):
            async with item.transaction(connection):
                await awaited_write(connection, "undone")
                raise LookupError("boom")
        item = await awaited.claim()
        await awaited_write(connection, "before")
        with suppress(LookupError):
            async with item.transaction(connection):
                await awaited_write(connection, "undone")
                raise LookupError("inside")
        await connection.commit()
        item = await awaited.claim()
        await awaited.release(item)
        await awaited.claim()
        with pytest.raises(StaleClaimError):
            async with item.transaction(connection):
                await awaited_write(connection, "never")

    run_async(test)
    assert effects() == ["one", "before"]
    assert [(item.status, item.error) for item in queue.items()] == [
        ("done", None),
        ("failed", "LookupError: boom"),
        ("failed", "LookupError: inside"),
        ("processing", None),
    ]


def test_a_task_that_is_cancelled_in_the_block_releases_its_item(queue, run_async, effects):
    async def test(awaited, connection):
        await awaited.enqueue("a")
        item = await awaited.claim()
        inside = asyncio.Event()

        async def work():
            async with item.transaction(connection):
                await awaited_write(connection, "undone")
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_async(test)
    assert effects() == []
    assert (queue.get(1).status, queue.history(1)[0].ending) == ("pending", "released")


def test_an_async_loop_counts_what_was_committed_and_fails_what_was_not(queue, run_async, effects):
    async def test(awaited, connection):
        async def handler(item):
            if item.content == "block":
                async with item.transaction(connection):
                    await awaited_write(connection, item.content)
                return
            await awaited_write(connection, item.content)
            await awaited.mark_done(item, connection=connection)
            await (connection.commit() if item.content == "committed" else connection.rollback())

        await awaited.enqueue_many(["committed", "rolled back", "block"])
        report = await awaited.drain(handler)
        assert (report.done, report.failed, report.lost) == (2, 1, 0)

    run_async(test)
    assert effects() == ["committed", "block"]
    assert queue.get(2).error == "it was marked done in a transaction that was not committed"


def test_a_task_goes_on_after_its_item_ended_in_its_own_transaction(queue, run_async, effects):
    async def test(awaited, connection):
        withdrawn = []

        async def handler(item):
            await awaited_write(connection, "one")
            await awaited.mark_done(item, connection=connection)
            await connection.commit()
            # What the loop looks at to cancel the tasks of items that were cancelled or lost.
            ours = [loop for loop in tuple(running) if loop.queues[0].path == queue.path]
            withdrawn.extend([loop.native.withdrawn() for loop in ours])

        await awaited.enqueue("x")
        report = await awaited.drain(handler)
        assert (report.done, report.lost, any(withdrawn)) == (1, 0, False)
        assert withdrawn

    run_async(test)


def test_a_plain_connection_is_not_for_an_async_block(queue, path):
    async def main():
        async with AsyncQueue(path) as awaited:
            await awaited.enqueue("x")
            item = await awaited.claim()
            with closing(sqlite3.connect(path)) as own, pytest.raises(TypeError, match="not asynchronous"):
                item.transaction(own)

    asyncio.run(main())
