"""Threads for calls that block: daemons that see the caller's context variables; and waits for their answers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Call = tuple[Callable[[], Any], asyncio.Future[Any]]

T = TypeVar("T")

IDLE = 32
"""How many threads are kept for the next calls."""


class Threads:
    """One thread for each running call, and a few idle ones; usable from any event loop.

    They are daemons so that a handler that never returns cannot keep the interpreter from exiting.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.idle: list[SimpleQueue[Call | None]] = []
        self.is_closed = False

    def call(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Call something in a thread. Cancelling the answer does not end the call."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            inbox = self.idle.pop()
        except IndexError:
            inbox = self.start_thread()
        inbox.put((functools.partial(contextvars.copy_context().run, function, *arguments), answer))
        return answer

    def close(self) -> None:
        """End the threads, each after its call."""
        self.is_closed = True
        with contextlib.suppress(IndexError):
            while True:
                self.idle.pop().put(None)

    def start_thread(self) -> SimpleQueue[Call | None]:
        """Start one more thread."""
        inbox: SimpleQueue[Call | None] = SimpleQueue()
        threading.Thread(target=self.serve, args=(inbox,), name=self.name, daemon=True).start()
        return inbox

    def serve(self, inbox: SimpleQueue[Call | None]) -> None:
        """In the thread: make the calls that arrive in its inbox."""
        while (call := inbox.get()) is not None:
            work, answer = call
            value, error = None, None
            try:
                value = work()
            except BaseException as raised:
                error = raised
            try:
                answer.get_loop().call_soon_threadsafe(self.deliver, inbox, answer, value, error)
            except RuntimeError:
                # The event loop is closed, so no task waits for the answer.
                return
            del call, work, answer, value, error

    def deliver(
        self, inbox: SimpleQueue[Call | None], answer: asyncio.Future[Any], value: Any, error: BaseException | None
    ) -> None:
        """In the event loop: set the answer, unless it was cancelled."""
        if self.is_closed or len(self.idle) >= IDLE:
            inbox.put(None)
        else:
            self.idle.append(inbox)
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)


async def through_cancellation(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Wait until something is done, even if this task is cancelled meanwhile. The caller raises CancelledError."""
    future = asyncio.ensure_future(work)
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    return future.result()


async def result_despite_cancellation(future: asyncio.Future[T]) -> T:
    """Wait for a thread's answer. A cancellation is raised only after the thread is done."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await through_cancellation(future)
        raise
