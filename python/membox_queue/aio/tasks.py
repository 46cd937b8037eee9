"""The asyncio driver: runs the slots of a loop as tasks; plain handlers run in threads."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from membox_queue.aio.item import AsyncItem, plain
from membox_queue.aio.threads import Threads, through_cancellation
from membox_queue.errors import QueueError, SimulatedCrash
from membox_queue.loops.loop import LONG_SLICE, SLICE, Loop
from membox_queue.loops.report import DrainReport
from membox_queue.loops.requests import Call, Handle, Wait
from membox_queue.loops.slot import Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from membox_queue import _native
    from membox_queue.loops.plan import Handler, Plan
    from membox_queue.loops.requests import Request


logger = logging.getLogger("membox_queue")

LOOK_EVERY = 0.5
"""Seconds between two looks for items that were cancelled or lost while their handlers run."""


class TaskDriver:
    """Carries out the requests of a loop's slots, each slot in a task."""

    def __init__(
        self,
        queues: Sequence[_native.Queue[Any]],
        handlers: Sequence[Handler],
        plan: Plan,
        run_in_thread: Callable[..., Coroutine[Any, Any, Any]],
    ) -> None:
        # Plain handlers, and the wait for work, have threads of their own: they may take long.
        self.threads = Threads("membox-queue-handler")
        self.loop = Loop(queues, handlers, plan, in_thread=self.in_thread)
        self.run_in_thread = run_in_thread
        self.waiting: asyncio.Future[None] | None = None
        # The handlers that run as tasks, by id and attempt of their (first) item.
        self.handling: dict[tuple[int, int], asyncio.Task[Any]] = {}
        self.is_handling = asyncio.Event()
        self.tasks_in_threads: set[asyncio.Task[Any] | None] = set()
        self.stop_asked = asyncio.Event()
        self.end_asked = asyncio.Event()
        self.events = asyncio.get_running_loop()
        self.ended: Future[None] = Future()

    def stop(self) -> None:
        """Claim no more; running handlers have the grace period to finish. From any thread."""
        self.loop.stop()
        self.set_event(self.stop_asked)

    def end_now(self) -> None:
        """Stop without the grace period."""
        self.stop()
        self.set_event(self.end_asked)

    async def wait_ended(self) -> None:
        """Wait for the end, from any event loop. If the loop's own has stopped, its items are released here."""
        ended = asyncio.wrap_future(self.ended)
        while self.events.is_running() and not ended.done():
            await asyncio.wait([ended], timeout=SLICE)
        if not self.ended.done() and self.loop.has_begun:
            await self.run_in_thread(self.loop.close)

    def set_event(self, event: asyncio.Event) -> None:
        """Set an event, from any thread."""
        # The event loop may have been closed meanwhile; then no task waits for the event.
        with contextlib.suppress(RuntimeError):
            self.events.call_soon_threadsafe(event.set)

    async def run(self) -> DrainReport:
        """Run all slots to their end. Whatever ends them, claimed items are released first."""
        loop = self.loop
        slots: list[asyncio.Task[None]] = []
        with loop.progress:
            try:
                if not await self.run_in_thread(loop.begin):
                    return DrainReport(refused=True)
                if loop.stop_asked:
                    self.stop()
                slots += [asyncio.create_task(self.run_slot(slot)) for slot in range(loop.plan.concurrency)]
                running = set(slots)
                if loop.plan.cancel_running:
                    slots.append(asyncio.create_task(self.cancel_withdrawn()))
                await until_ended(running, self.stop_asked, None)
                await until_ended(running, self.end_asked, loop.plan.grace_seconds)
            except SimulatedCrash:
                loop.native.abandon()
                raise
            finally:
                if loop.has_begun:
                    loop.end()
                    await through_cancellation(self.release(slots))
        return loop.report()

    def end(self) -> None:
        """End the threads, and wake the tasks that wait for the end."""
        self.threads.close()
        self.ended.set_result(None)

    async def release(self, slots: list[asyncio.Task[None]]) -> None:
        """Wait for the slots to end, then release their items."""
        self.loop.native.stop()
        for task in slots:
            task.cancel()
        await asyncio.gather(*slots, return_exceptions=True)
        await self.run_in_thread(self.loop.close)

    async def run_slot(self, number: int) -> None:
        """Carry out the requests of a slot in this task."""
        requests = Slot(self.loop, number).requests()
        answer: Any = None
        resume: Callable[[Any], Request] = requests.send
        while True:
            try:
                request = resume(answer)
            except StopIteration:
                return
            try:
                answer = await self.carry_out(request)
                resume = requests.send
            except Exception as error:
                answer, resume = error, requests.throw

    async def carry_out(self, request: Request) -> Any:
        """Do what a slot asks for, and return the answer."""
        if isinstance(request, Handle):
            return await self.handle(request.handler, request.argument)
        if isinstance(request, Call):
            return await self.run_in_thread(request.function, *request.arguments)
        if isinstance(request, Wait):
            return await self.wait(request.slot)
        return await asyncio.sleep(request.seconds)

    async def handle(self, handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
        """Call a handler: a coroutine function in the event loop, a plain function in a thread."""
        if self.loop.is_async:
            call = called(handler, self.wrapped(argument))
        else:
            # When this task is cancelled the thread goes on; its item is released, and its result is refused.
            raised, result = await self.threads.call(outcome_of, handler, argument)
            if not inspect.isawaitable(result):
                return raised, result
            call = called(lambda result: result, result)
        first = argument[0] if isinstance(argument, list) else argument
        claim = first.id, first.attempt
        # A task of its own, so that the handler cannot change the slot's context variables or cancel the slot.
        self.handling[claim] = asyncio.create_task(call)
        self.is_handling.set()
        try:
            raised, result = await self.handling[claim]
        except asyncio.CancelledError as error:
            raised, result = error, None
        finally:
            self.handling.pop(claim, None)
        if raised is None:
            return None, result
        slot = asyncio.current_task()
        return raised, slot is not None and slot.cancelling() > 0

    async def cancel_withdrawn(self) -> None:
        """Cancel the tasks of handlers whose items were cancelled or lost. Each is cancelled once."""
        withdrawn: set[tuple[int, int]] = set()
        while True:
            if not self.handling:
                self.is_handling.clear()
            await self.is_handling.wait()
            await asyncio.sleep(LOOK_EVERY)
            try:
                withdrawn.update(await self.run_in_thread(self.loop.native.withdrawn))
            except QueueError as error:
                logger.debug("membox_queue could not look for cancelled items, and tries again: %s", error)
            withdrawn.intersection_update(self.handling)
            # A plain function goes on in its thread, and its slot waits for it.
            for claim in [each for each in withdrawn if self.handling[each] not in self.tasks_in_threads]:
                withdrawn.discard(claim)
                self.handling.pop(claim).cancel("the item was cancelled or lost")

    def in_thread(self, handler: Handler) -> Handler:
        """Return a coroutine function that calls a plain handler, with plain items, in a thread."""

        async def call(argument: Any) -> Any:
            given = [plain(item) for item in argument] if isinstance(argument, list) else plain(argument)
            task = asyncio.current_task()
            self.tasks_in_threads.add(task)
            try:
                raised, result = await self.threads.call(outcome_of, handler, given)
            finally:
                self.tasks_in_threads.discard(task)
            if raised is not None:
                raise raised
            return await result if inspect.isawaitable(result) else result

        return call

    def wrapped(self, argument: Any) -> Any:
        """Return the items as a coroutine function gets them."""
        if isinstance(argument, list):
            return [AsyncItem(item, self.run_in_thread) for item in argument]
        return AsyncItem(argument, self.run_in_thread)

    async def wait(self, slot: int) -> bool:
        """Wait for work; all idle slots share one waiting thread."""
        if self.waiting is None or self.waiting.done():
            self.waiting = self.threads.call(wait_for_work, self.loop, slot)
        await asyncio.shield(self.waiting)
        return True


def wait_for_work(loop: Loop, slot: int) -> None:
    """In a thread: wait until it is worth claiming again, or the loop is stopped."""
    while not loop.native.wait(slot, LONG_SLICE):
        pass


def outcome_of(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """Return what a call raised, or None, and what it returned: a future cannot carry a StopIteration."""
    try:
        return None, handler(argument)
    except BaseException as error:
        return error, None


async def called(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """Call a handler, and await what it returns if that can be awaited.

    What it raises is returned as a value: a SystemExit would end the event loop before anything is recorded, and a
    GeneratorExit would close the coroutine that awaits it.
    """
    try:
        result = handler(argument)
        return None, await result if inspect.isawaitable(result) else result
    except BaseException as error:
        return error, None


async def until_ended(running: set[asyncio.Task[Any]], end: asyncio.Event, limit: float | None) -> None:
    """Wait until all tasks have ended, the event is set, or the time is over. Raise what a task raises."""
    clock = asyncio.get_running_loop().time
    deadline = None if limit is None else clock() + limit
    ending: asyncio.Task[Any] = asyncio.create_task(end.wait())
    try:
        while running and not ending.done():
            left = None if deadline is None else deadline - clock()
            if left is not None and left <= 0:
                return
            done, _ = await asyncio.wait({*running, ending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            running -= done
            for task in done - {ending}:
                task.result()
    finally:
        ending.cancel()
