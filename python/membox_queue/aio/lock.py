"""AsyncLock: a named lock in asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Any

from membox_queue.aio.waiting import outlast
from membox_queue.errors import QueueError
from membox_queue.queue import Queue

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from membox_queue import _native
    from membox_queue.aio.queue import AsyncQueue

LOCK_PAUSE = 0.02
"""Seconds between two tries for a lock that somebody holds."""


class AsyncLock:
    """A named lock in asyncio; entering it raises `QueueBusyError` while somebody else holds it."""

    def __init__(self, queue: AsyncQueue[Any], name: str, ttl: float, wait: float) -> None:
        self._queue = queue
        self._make = functools.partial(Queue.lock, name=name, ttl=ttl)
        self._wait = wait
        self._lock: _native.Lock | None = None

    async def __aenter__(self) -> Self:
        lock = await self._queue._call(self._make)
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._wait
        try:
            while clock() < deadline and not await self._queue._run_in_thread(lock.acquire):
                await asyncio.sleep(LOCK_PAUSE)
            if not lock.held:
                await self._queue._run_in_thread(lock.__enter__)
        except asyncio.CancelledError:
            with contextlib.suppress(QueueError):
                await outlast(self._queue._run_in_thread(lock.release))
            raise
        self._lock = lock
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            await self._queue._run_in_thread(lock.__exit__, kind, error, None)

    @property
    def lost(self) -> bool:
        """Whether somebody else has taken it over."""
        return self._lock is not None and self._lock.lost
