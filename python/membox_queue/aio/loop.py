"""The loops in asyncio: tasks carry out what the slots of a shift ask for; see `drain` for what that is."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.aio.item import AsyncItem
from membox_queue.aio.waiting import outlast
from membox_queue.drain import LONG_SLICE, DrainReport, Shift
from membox_queue.errors import SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from membox_queue.drain import Handler


class Loop:
    """Carries out the requests of a shift's slots, each a task of the event loop."""

    def __init__(self, shift: Shift, run_in_thread: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self.shift = shift
        self.run_in_thread = run_in_thread
        self.watch: asyncio.Future[None] | None = None
        self.asked_to_stop = asyncio.Event()
        self.events = asyncio.get_running_loop()
        # Plain handlers, and the look-out, have threads of their own: they may take long.
        self.threads = ThreadPoolExecutor(shift.plan.concurrency + 1, thread_name_prefix="membox-queue-handler")

    def stop(self) -> None:
        """Claim no more; what runs has the grace to end. From any thread."""
        self.shift.stop()
        self.events.call_soon_threadsafe(self.asked_to_stop.set)

    async def run(self) -> DrainReport:
        """Run all slots to their end; whatever ends it, what is held is given back first."""
        shift = self.shift
        slots: list[asyncio.Task[None]] = []
        with shift.tell:
            try:
                if not await self.run_in_thread(shift.begin):
                    return DrainReport(refused=True)
                if shift.stop_asked:
                    self.stop()
                slots += [asyncio.create_task(self.live(slot)) for slot in range(shift.plan.concurrency)]
                await self.until_done(slots)
            except SimulatedCrash:
                shift.working.abandon()
                raise
            finally:
                if shift.crew is not None:
                    shift.is_closing, shift.was_stopped = True, shift.working.stopped
                    await outlast(self.give_back(slots))
                self.threads.shutdown(wait=False)
        return shift.report()

    async def until_done(self, slots: list[asyncio.Task[None]]) -> None:
        """Wait for the slots; once the shift is stopped, no longer than the grace."""
        stop: asyncio.Task[Any] = asyncio.create_task(self.asked_to_stop.wait())
        running: set[asyncio.Task[Any]] = set(slots)
        try:
            while running and not stop.done():
                done, _ = await asyncio.wait({*running, stop}, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                for task in done - {stop}:
                    task.result()
            if running:
                done, _ = await asyncio.wait(running, timeout=self.shift.plan.grace)
                for task in done:
                    task.result()
        finally:
            stop.cancel()

    async def give_back(self, slots: list[asyncio.Task[None]]) -> None:
        """Let the slots come to rest, then give back what they held."""
        self.shift.working.stop()
        for task in slots:
            task.cancel()
        await asyncio.gather(*slots, return_exceptions=True)
        await self.run_in_thread(self.shift.close)

    async def live(self, slot: int) -> None:
        """Carry out a slot's requests in this task."""
        life = self.shift.life(slot)
        answer: Any = None
        resume: Callable[[Any], tuple[Any, ...]] = life.send
        while True:
            try:
                request = resume(answer)
            except StopIteration:
                return
            try:
                answer = await self.carry_out(request)
                resume = life.send
            except (Exception, SystemExit) as error:
                answer, resume = error, life.throw

    async def carry_out(self, request: tuple[Any, ...]) -> Any:
        """Do what a slot asks for."""
        kind = request[0]
        if kind == "handle":
            return await self.handle(request[1], request[2])
        if kind == "call":
            return await self.run_in_thread(request[1], *request[2])
        if kind == "wait":
            return await self.wait(request[1])
        return await asyncio.sleep(request[1])

    async def handle(self, handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
        """Call a handler: one that is to be awaited in the event loop, a plain one in a thread."""
        try:
            if self.shift.is_async:
                result = handler(self.wrapped(argument))
            else:
                # When we are cancelled the thread goes on by itself; its item is given back, what it says is refused.
                result = await asyncio.shield(self.events.run_in_executor(self.threads, handler, argument))
            return None, (await result) if inspect.isawaitable(result) else result
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling() > 0:
                raise
            failure = RuntimeError("the handler let a cancellation through that was not meant for it")
            failure.__cause__ = error
            return failure, None
        except BaseException as error:
            if not _native.is_failure(error):
                raise
            return error, None

    def wrapped(self, argument: Any) -> Any:
        """The items as a coroutine gets them."""
        if isinstance(argument, list):
            return [AsyncItem(item, self.run_in_thread) for item in argument]
        return AsyncItem(argument, self.run_in_thread)

    async def wait(self, slot: int) -> bool:
        """All idle slots wait behind one look-out."""
        if self.watch is None or self.watch.done():
            self.watch = self.events.run_in_executor(self.threads, look_out, self.shift, slot)
        await asyncio.shield(self.watch)
        return True


def look_out(shift: Shift, slot: int) -> None:
    """Wait in a thread until it is worth looking again, or the shift is stopped."""
    while not shift.working.wait(slot, LONG_SLICE):
        pass
