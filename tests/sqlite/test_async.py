"""AsyncQueue beside a file that is missing, moved or locked by another process."""

import asyncio
import os
import pickle
import time

import pytest
from in_asyncio import becomes, in_loop, nothing
from membox_queue import (
    AsyncQueue,
    Queue,
    QueueBusyError,
)


def test_nothing_touches_the_file_before_the_first_await(tmp_path):
    async def main():
        queue = AsyncQueue(tmp_path / "memory.db")
        pending = queue.enqueue("x")
        assert os.listdir(tmp_path) == []
        async with queue:
            assert await pending == 1
        assert os.listdir(tmp_path) == ["memory.db"]

    AsyncQueue(tmp_path / "missing" / "memory.db")
    asyncio.run(main())


def test_a_path_that_cannot_be_opened_is_an_error_at_the_first_await(tmp_path):
    queue = AsyncQueue(tmp_path / "missing" / "memory.db")
    with pytest.raises(FileNotFoundError):
        asyncio.run(queue.pending())

    async def main():
        async with queue:
            pytest.fail("it could not be opened")

    with pytest.raises(FileNotFoundError):
        asyncio.run(main())


@pytest.mark.parametrize("what", ["enqueue", "claim", "drain", "async with", "open"])
@in_loop
async def test_the_event_loop_goes_on_while_another_process_holds_the_write_lock(path, queue, writer, what):
    queue.enqueue_many(["a", "b"])
    async with AsyncQueue(path) as aqueue:
        held = None
        if what == "async with":
            held = await aqueue.claim()
        elif what != "open":
            await aqueue.pending()

        async def end():
            async with held:
                pass

        close_if_idle = await asyncio.to_thread(writer)
        calls = {
            "enqueue": lambda: aqueue.enqueue("x"),
            "open": lambda: aqueue.enqueue("x"),
            "claim": lambda: aqueue.claim(),
            "drain": lambda: aqueue.drain(nothing, concurrency=2),
            "async with": end,
        }
        task = asyncio.create_task(calls[what]())
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not task.done()
        await asyncio.to_thread(close_if_idle)
        await task


@in_loop
async def test_a_busy_store_is_tried_again_and_on_error_is_told(path, queue, writer):
    queue.enqueue("x")
    async with AsyncQueue(path, busy_timeout=0.02) as aqueue:
        told = []
        close_if_idle = await asyncio.to_thread(writer)
        task = asyncio.create_task(aqueue.work(nothing, on_error=lambda *what: told.append(what)))
        await becomes(lambda: told)
        await asyncio.to_thread(close_if_idle)
        await becomes(lambda: queue.counts()["done"] == 1)
        aqueue.stop()
        assert (await task).done == 1
        error, item, phase = told[0]
        assert (type(error), item, phase) == (QueueBusyError, None, "claim")


def test_a_path_that_could_not_be_opened_may_be_opened_later_in_another_event_loop(tmp_path):
    queue = AsyncQueue(tmp_path / "later" / "memory.db")

    async def together():
        return await asyncio.gather(*(queue.enqueue("x") for _ in range(3)), return_exceptions=True)

    assert {type(error) for error in asyncio.run(together())} <= {
        FileNotFoundError,
        *FileNotFoundError.__subclasses__(),
    }
    (tmp_path / "later").mkdir()
    assert sorted(asyncio.run(together())) == [1, 2, 3]
    asyncio.run(queue.close())


@pytest.mark.parametrize("what", ["enqueue", "enqueue_many", "claim", "claim with wait", "purge", "lock"])
def test_a_verb_that_waits_to_write_is_cancelled_at_once_and_changes_nothing(path, queue, writer, what):
    queue.enqueue("x")

    async def main():
        async with AsyncQueue(path, busy_timeout=60) as aqueue:
            await aqueue.pending()
            close_if_idle = await asyncio.to_thread(writer)
            calls = {
                "enqueue": lambda: aqueue.enqueue("y"),
                "enqueue_many": lambda: aqueue.enqueue_many(["y", "z"]),
                "claim": lambda: aqueue.claim(),
                "claim with wait": lambda: aqueue.claim(wait=60),
                "purge": lambda: aqueue.purge("pending"),
                "lock": lambda: aqueue.lock("nightly").acquire(),
            }
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(calls[what](), 0.05)
            took = time.monotonic() - began
            await asyncio.to_thread(close_if_idle)
            return took

    # The file was held all the while.
    assert asyncio.run(main()) < 20
    assert (queue.counts()["pending"], queue.get(1).attempt) == (1, 0)


def test_what_ends_a_claim_is_carried_out_although_it_is_cancelled(path, queue, writer):
    queue.enqueue("x")

    async def main():
        async with AsyncQueue(path) as aqueue:
            item = await aqueue.claim()
            close_if_idle = await asyncio.to_thread(writer)
            ending = asyncio.create_task(aqueue.mark_done(item))
            await asyncio.sleep(0.05)
            ending.cancel()
            await asyncio.sleep(0.05)
            assert not ending.done()
            await asyncio.to_thread(close_if_idle)
            await asyncio.wait([ending])
            assert ending.cancelled()

    asyncio.run(main())
    assert queue.get(1).status == "done"


def test_a_relative_path_is_resolved_before_the_first_await(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "link.db").symlink_to("memory.db")
    expected = tmp_path / "here" / "memory.db"

    async def main():
        monkeypatch.chdir(tmp_path / "here")
        for name in ("memory.db", "link.db"):
            aqueue = AsyncQueue(name)
            monkeypatch.chdir(tmp_path / "there")
            assert aqueue.path == expected
            await aqueue.enqueue("x")
            assert aqueue.path == expected
            assert pickle.loads(pickle.dumps(aqueue)).path == expected
            await aqueue.close()
            monkeypatch.chdir(tmp_path / "here")

    asyncio.run(main())
    assert os.listdir(tmp_path / "there") == []
    with Queue(expected) as queue:
        assert queue.pending() == 2


def test_a_loop_that_could_not_give_everything_back_is_over_all_the_same(path, queue, writer):
    async def main():
        async with AsyncQueue(path, busy_timeout=0.05) as aqueue:
            began = asyncio.Event()

            async def handler(item):
                began.set()
                await asyncio.Event().wait()

            task = asyncio.create_task(aqueue.work(handler))
            await began.wait()
            close_if_idle = await asyncio.to_thread(writer)
            closing = asyncio.create_task(aqueue.close())
            with pytest.raises(QueueBusyError):
                await asyncio.wait_for(task, 20)
            await asyncio.to_thread(close_if_idle)
            await asyncio.wait_for(closing, 20)

    queue.enqueue("x")
    asyncio.run(main())


def test_it_names_its_file_and_finds_it_again_in_another_process(path):
    queue = AsyncQueue(path, "emails", max_retries=7)
    assert queue.path == path.resolve()
    assert repr(queue) == f"<AsyncQueue 'emails' in {os.fspath(path)!r}>"
    again = pickle.loads(pickle.dumps(queue))
    assert (again.path, again.name, again._given) == (queue.path, "emails", {"max_retries": 7})


def test_a_queue_in_memory_has_no_file_and_is_not_sent_to_another_process():
    queue = AsyncQueue(":memory:")
    assert queue.path is None
    with pytest.raises(TypeError, match="in-memory"):
        pickle.dumps(queue)
