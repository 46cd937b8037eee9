"""cancel_running: asyncio cancels the task of a handler whose item was cancelled or lost."""

import asyncio

import pytest
from in_asyncio import becomes, in_loop
from membox_queue import DrainReport, NewItem
from membox_queue.aio import tasks
from programs import PROGRAMS


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(tasks, "LOOK_EVERY", 0.01)


@pytest.fixture
def logged(caplog):
    caplog.set_level("INFO", "membox_queue")
    return lambda: [
        (record.levelname, record.getMessage(), record.exc_info)
        for record in caplog.records
        if not record.event.startswith("worker_")
    ]


def looks_of(aqueue):
    """Count from now on how often the loop looks for cancelled and lost items."""
    (driver,) = aqueue._loops
    run_in_thread, looks = driver.run_in_thread, []

    async def counted(function, *arguments):
        answer = await run_in_thread(function, *arguments)
        if function.__name__ == "withdrawn":
            looks.append(answer)
        return answer

    driver.run_in_thread = counted
    return looks


class Agent:
    """A handler that waits for an answer that never comes."""

    def __init__(self):
        self.started = []
        self.ended = []

    async def __call__(self, item):
        self.started.append(item)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append(item)
            raise


@pytest.mark.parametrize("verb", ["drain", "work"])
@in_loop
async def test_the_task_of_a_cancelled_item_is_cancelled_and_the_loop_goes_on(aqueue, queue, verb, logged):
    queue.enqueue_many(["slow", "next"])
    agent, told = Agent(), []
    loop = asyncio.create_task(getattr(aqueue, verb)(agent, on_error=lambda *error: told.append(error)))
    for number in (1, 2):
        await becomes(lambda number=number: len(agent.started) == number)
        assert queue.cancel(number)
    await becomes(lambda: queue.counts()["cancelled"] == 2)
    aqueue.stop()
    report = await loop
    assert (report.cancelled, report.failed, report.lost) == (2, 0, 0)
    assert [item.id for item in agent.ended] == [1, 2]
    assert told == []
    assert logged() == [("INFO", "item 1 was cancelled", None), ("INFO", "item 2 was cancelled", None)]


@in_loop
async def test_a_cancel_in_another_process_is_seen(aqueue, queue, address, start):
    queue.enqueue("slow")
    agent = Agent()
    draining = asyncio.create_task(aqueue.drain(agent))
    await becomes(lambda: agent.started)
    assert await asyncio.to_thread(start(PROGRAMS / "cancel.py", address, 1).wait) == 0
    assert await draining == DrainReport(cancelled=1)


@pytest.mark.parametrize("loss", ["claimed by another", "deleted"])
@in_loop
async def test_the_task_of_a_lost_item_is_cancelled(aqueue, queue, clock, loss, logged):
    queue.enqueue("slow")
    agent, told = Agent(), []
    # A claim that is no longer renewed is lost to the next claim after its lease.
    draining = asyncio.create_task(aqueue.drain(agent, max_runtime=0.001, on_error=lambda *error: told.append(error)))
    await becomes(lambda: agent.started)
    if loss == "deleted":
        assert queue.delete(1)
    else:
        clock.advance(61)
        successor = await becomes(queue.claim)
    assert await draining == DrainReport(lost=1)
    assert agent.ended
    assert [(item.id, phase) for _, item, phase in told] == [(1, "lost")]
    ((level, message, traceback),) = logged()
    assert (level, traceback) == ("INFO", None)
    assert message.startswith("item 1 was lost: ")
    if loss != "deleted":
        assert queue.mark_done(successor)


@in_loop
async def test_a_handler_that_swallows_the_cancellation_ends_when_it_returns(aqueue, queue):
    queue.enqueue("slow")
    agent = Agent()
    swallowed = asyncio.Event()

    async def stubborn(item):
        try:
            await agent(item)
        except asyncio.CancelledError:
            swallowed.set()
        return "too late"

    draining = asyncio.create_task(aqueue.drain(stubborn))
    await becomes(lambda: agent.started)
    queue.cancel(1)
    assert await draining == DrainReport(cancelled=1)
    assert swallowed.is_set()
    assert queue.get(1).result is None


@in_loop
async def test_a_batch_is_cancelled_once_none_of_its_items_is_left(aqueue, queue):
    queue.enqueue_many([NewItem(number, group="a") for number in range(2)])
    agent = Agent()
    draining = asyncio.create_task(aqueue.drain(agent, batch="group"))
    await becomes(lambda: agent.started)
    queue.cancel(1)
    looks = looks_of(aqueue)
    await becomes(lambda: len(looks) > 2)
    assert agent.ended == []
    queue.cancel(2)
    assert await draining == DrainReport(cancelled=2)
    assert len(agent.ended) == 1


@in_loop
async def test_a_plain_function_behind_awaited_middleware_runs_to_its_end(aqueue, queue, until):
    queue.enqueue("x")
    seen = []

    def plain(item):
        queue.cancel(item.id)
        looks = looks_of(aqueue)
        until(lambda: len(looks) > 2)
        return "ended"

    async def middleware(item, call_next):
        seen.append(await call_next(item))

    assert await aqueue.drain(plain, middleware=[middleware]) == DrainReport(cancelled=1)
    assert seen == ["ended"]


@in_loop
async def test_without_cancel_running_the_handler_asks(aqueue, queue, logged):
    queue.enqueue("slow")

    async def asks(item):
        assert not any(task.get_coro().__name__ == "cancel_withdrawn" for task in asyncio.all_tasks())
        queue.cancel(item.id)
        await item.check()

    assert await aqueue.drain(asks, cancel_running=False) == DrainReport(cancelled=1)
    assert logged() == [("INFO", "item 1 was cancelled", None)]


@in_loop
async def test_a_handler_that_cancels_itself_fails_its_item(aqueue, queue):
    queue.enqueue("x")

    async def cancels_itself(item):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    assert await aqueue.drain(cancels_itself) == DrainReport(failed=1)


@in_loop
async def test_nothing_is_looked_at_while_no_handler_runs(aqueue, queue):
    worker = asyncio.create_task(aqueue.work(Agent()))
    await becomes(lambda: aqueue._loops)
    driver = next(iter(aqueue._loops))
    await becomes(lambda: driver.waiting is not None)
    assert not driver.is_handling.is_set()
    aqueue.stop()
    assert await worker == DrainReport(stopped=True)
