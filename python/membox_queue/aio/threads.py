"""Threads for what is not awaited: they keep nobody from exiting, and know the caller's context variables."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = tuple[Callable[[], Any], asyncio.Future[Any]]

T = TypeVar("T")

IDLE = 32
"""How many threads are kept for the next calls."""


class Threads:
    """As many threads as calls are under way, and a few that wait for the next; from any event loop.

    They are daemons so that a handler that never returns cannot keep the interpreter from exiting.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.idle: list[SimpleQueue[Call | None]] = []
        self.is_closed = False

    def call(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Call something in a thread. Who gives the answer up does not end the call."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            desk = self.idle.pop()
        except IndexError:
            desk = self.hire()
        desk.put((functools.partial(contextvars.copy_context().run, function, *arguments), answer))
        return answer

    def close(self) -> None:
        """Let the threads go, each when its call has ended."""
        self.is_closed = True
        with contextlib.suppress(IndexError):
            while True:
                self.idle.pop().put(None)

    def hire(self) -> SimpleQueue[Call | None]:
        """Start one more thread."""
        desk: SimpleQueue[Call | None] = SimpleQueue()
        threading.Thread(target=self.serve, args=(desk,), name=self.name, daemon=True).start()
        return desk

    def serve(self, desk: SimpleQueue[Call | None]) -> None:
        """Do what comes to this desk."""
        while (call := desk.get()) is not None:
            work, answer = call
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:
                error = raised
            try:
                answer.get_loop().call_soon_threadsafe(self.tell, desk, answer, value, error)
            except RuntimeError:
                # The event loop is closed, and nobody is left to be told.
                return
            del call, work, answer, value, error

    def tell(
        self, desk: SimpleQueue[Call | None], answer: asyncio.Future[Any], value: Any, error: BaseException | None
    ) -> None:
        """In the event loop: give the answer to whoever still waits for it."""
        if self.is_closed or len(self.idle) >= IDLE:
            desk.put(None)
        else:
            self.idle.append(desk)
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)
