"""Waits: all tasks that wait for something in one file, and the one thread that watches the file."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from membox_queue import _native

    Answers = list[tuple[asyncio.Future[Any], Any]]

OVER = object()
"""The answer to a wait whose time is over."""


class Waits:
    """Tickets of the waiting tasks of all event loops, and the thread that wakes them when it is their turn.

    The thread is a daemon that lives while there are waits; it never calls code of the application.
    """

    def __init__(self, watcher: _native.Watcher) -> None:
        self.watcher = watcher
        self.waiting: dict[int, asyncio.Future[Any]] = {}

    def start(self, is_wanted: bool) -> None:
        """Start the thread, when the watcher wants one."""
        if is_wanted:
            threading.Thread(target=self.serve, name="membox-queue-watch", daemon=True).start()

    def serve(self) -> None:
        """In the thread: wake each event loop, once a batch, with the waits that have their turn."""
        while (turns := self.watcher.turns()) is not None:
            by_loop: dict[asyncio.AbstractEventLoop, Answers] = {}
            for tickets, item in turns:
                for ticket in tickets:
                    if (future := self.waiting.get(ticket)) is not None:
                        by_loop.setdefault(future.get_loop(), []).append((future, item))
            for loop, answers in by_loop.items():
                try:
                    loop.call_soon_threadsafe(answer, answers)
                except RuntimeError:
                    self.forget(loop)
            # Nothing of a batch is kept until the next.
            del turns, by_loop

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """Return the tickets of a closed event loop, whose tasks cannot do so."""
        for ticket, future in tuple(self.waiting.items()):
            if future.get_loop() is loop:
                self.waiting.pop(ticket, None)
                self.watcher.leave(ticket)

    async def ended(self, queue: _native.Queue[Any], id: int, deadline: float) -> tuple[Any, bool]:
        """Wait for the end of an item.

        Return the item, None if the caller must read it itself, or OVER; and whether it was read once.
        """
        with Ticket(self) as ticket:
            future = ticket.wait(deadline, lambda: self.watcher.await_ending(ticket.number, queue, id))
            found = await future
            return found, ticket.leave()


class Ticket:
    """One task's place in line, until the end of a `with` block."""

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self.number = waits.watcher.draw()
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()

    def wait(self, deadline: float, begin: Callable[[], bool]) -> asyncio.Future[Any]:
        """Return a future that is answered when the ticket has its turn, or with OVER at the deadline."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.waits.waiting[self.number] = future
        if deadline < math.inf:
            self.timer = loop.call_at(deadline, answer, [(future, OVER)])
        self.waits.start(begin())
        return future

    async def turn(self, deadline: float) -> bool:
        """Wait for a turn in line. Return False at the deadline."""
        try:
            watcher = self.waits.watcher
            return await self.wait(deadline, lambda: watcher.await_turn(self.number)) is not OVER
        finally:
            self.stop_listening()

    def stop_listening(self) -> None:
        """Stop listening for an answer."""
        self.waits.waiting.pop(self.number, None)
        if self.timer is not None:
            self.timer.cancel()

    def leave(self) -> bool:
        """Leave the line; a turn goes to the next ticket. Return whether an awaited item was read once."""
        self.stop_listening()
        return self.waits.watcher.leave(self.number)


def answer(answers: Answers) -> None:
    """In the event loop: answer the waits that were not cancelled."""
    for future, value in answers:
        if not future.done():
            future.set_result(value)


class Files:
    """The waits of each file that is open, in this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waits: weakref.WeakValueDictionary[int, Waits] = weakref.WeakValueDictionary()

    def of(self, queue: _native.Queue[Any]) -> Waits:
        """Return the waits of a queue's file; all queues of a file share them."""
        with self.lock:
            found = self.waits.get(queue._database)
            if found is None:
                found = self.waits[queue._database] = Waits(queue._watcher())
            return found


files = Files()


def begin_in_child() -> None:
    """A forked child has none of its parent's threads, and none of its waits."""
    global files
    files = Files()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_in_child)


def of(queue: _native.Queue[Any]) -> Waits:
    """The waits of a queue's file."""
    return files.of(queue)
