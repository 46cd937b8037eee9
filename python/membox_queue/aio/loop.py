"""The loops in asyncio: tasks carry out what the slots of a shift ask for; see `drain` for what that is."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from membox_queue.aio.item import AsyncItem, plain
from membox_queue.aio.threads import Threads
from membox_queue.aio.waiting import outlast
from membox_queue.drain import LONG_SLICE, SLICE, DrainReport, Shift
from membox_queue.errors import SimulatedCrash

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from membox_queue import _native
    from membox_queue.plan import Handler, Plan


class Loop:
    """Carries out the requests of a shift's slots, each a task of the event loop."""

    def __init__(
        self,
        queue: _native.Queue[Any],
        handler: Handler,
        plan: Plan,
        run_in_thread: Callable[..., Coroutine[Any, Any, Any]],
    ) -> None:
        # Plain handlers, and the look-out, have threads of their own: they may take long.
        self.threads = Threads("membox-queue-handler")
        self.shift = Shift([queue], [handler], plan, in_thread=self.in_thread)
        self.run_in_thread = run_in_thread
        self.watch: asyncio.Future[None] | None = None
        self.asked_to_stop = asyncio.Event()
        self.asked_to_leave = asyncio.Event()
        self.events = asyncio.get_running_loop()
        self.ended: Future[None] = Future()

    def stop(self) -> None:
        """Claim no more; what runs has the grace to end. From any thread."""
        self.shift.stop()
        self.tell(self.asked_to_stop)

    def leave(self) -> None:
        """The same without the grace."""
        self.stop()
        self.tell(self.asked_to_leave)

    async def has_left(self) -> None:
        """Wait for the end, in any event loop. What one held that no longer runs is given back here."""
        ended = asyncio.wrap_future(self.ended)
        while self.events.is_running() and not ended.done():
            await asyncio.wait([ended], timeout=SLICE)
        if not self.ended.done() and self.shift.crew is not None:
            await self.run_in_thread(self.shift.close)

    def tell(self, event: asyncio.Event) -> None:
        """Set an event, from any thread."""
        # An event loop that was closed in the middle of this has nobody to tell.
        with contextlib.suppress(RuntimeError):
            self.events.call_soon_threadsafe(event.set)

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
                running = set(slots)
                await until_ended(running, self.asked_to_stop, None)
                await until_ended(running, self.asked_to_leave, shift.plan.patience)
            except SimulatedCrash:
                shift.working.abandon()
                raise
            finally:
                if shift.crew is not None:
                    shift.end()
                    await outlast(self.give_back(slots))
        return shift.report()

    def end(self) -> None:
        """Let the threads go, and whoever waits for the end."""
        self.threads.close()
        self.ended.set_result(None)

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
            except Exception as error:
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
        if self.shift.is_async:
            call = called(handler, self.wrapped(argument))
        else:
            # When we are cancelled the thread goes on by itself; its item is given back, what it says is refused.
            raised, result = await self.threads.call(outcome_of, handler, argument)
            if not inspect.isawaitable(result):
                return raised, result
            call = called(lambda result: result, result)
        # A task of its own: what it sets in context variables, and whom it cancels, is not the slot's.
        try:
            raised, result = await asyncio.create_task(call)
        except asyncio.CancelledError as error:
            raised, result = error, None
        if raised is None:
            return None, result
        slot = asyncio.current_task()
        return raised, slot is not None and slot.cancelling() > 0

    def in_thread(self, handler: Handler) -> Handler:
        """What calls a plain handler, with plain items, in a thread, where all around it is awaited."""

        async def call(argument: Any) -> Any:
            given = [plain(item) for item in argument] if isinstance(argument, list) else plain(argument)
            raised, result = await self.threads.call(outcome_of, handler, given)
            if raised is not None:
                raise raised
            return await result if inspect.isawaitable(result) else result

        return call

    def wrapped(self, argument: Any) -> Any:
        """The items as a coroutine gets them."""
        if isinstance(argument, list):
            return [AsyncItem(item, self.run_in_thread) for item in argument]
        return AsyncItem(argument, self.run_in_thread)

    async def wait(self, slot: int) -> bool:
        """All idle slots wait behind one look-out."""
        if self.watch is None or self.watch.done():
            self.watch = self.threads.call(look_out, self.shift, slot)
        await asyncio.shield(self.watch)
        return True


def look_out(shift: Shift, slot: int) -> None:
    """Wait in a thread until it is worth looking again, or the shift is stopped."""
    while not shift.working.wait(slot, LONG_SLICE):
        pass


def outcome_of(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """What came of a call, as a value: a future cannot carry a StopIteration."""
    try:
        return None, handler(argument)
    except BaseException as error:
        return error, None


async def called(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """Call a handler, and await what it returns if that is to be awaited.

    What it raises is told as a value: a SystemExit would end the event loop before anything is recorded, and a
    GeneratorExit would close whoever awaits it.
    """
    try:
        result = handler(argument)
        return None, await result if inspect.isawaitable(result) else result
    except BaseException as error:
        return error, None


async def until_ended(running: set[asyncio.Task[Any]], end: asyncio.Event, limit: float | None) -> None:
    """Wait until all have ended, the event is set, or the time is over; what one of them raises is raised."""
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
