"""AsyncLock: a named lock in asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.aio.threads import through_cancellation
from membox_queue.errors import QueueError
from membox_queue.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from membox_queue.aio.queue import AsyncQueue
    from membox_queue.options import Seconds


class AsyncLock:
    """A named lock in asyncio; see `Lock` for what entering and leaving it raise."""

    def __init__(self, queue: AsyncQueue[Any], name: str, ttl: Seconds, wait: Seconds) -> None:
        self._queue = queue
        self.name = name
        self._ttl = ttl
        self._wait = wait
        self._lock: _native.Lock | None = None

    @property
    def held(self) -> bool:
        """Whether this object took the lock and has not released it."""
        return self._lock is not None and self._lock.held

    async def acquire(self) -> bool:
        """Take the lock, waiting up to `wait`. Return False while another holder is alive."""
        return bool(await self._take(_native.Lock.acquire))

    async def release(self) -> bool:
        """Release the lock. Return False if it was not held, or was taken over."""
        return self._lock is not None and await self._queue._run_in_thread(self._lock.release)

    async def _take(self, how: Callable[[_native.Lock], Any]) -> Any:
        if self._lock is None:
            self._lock = await self._queue._call(Queue.lock, self.name, ttl=self._ttl, wait=self._wait)
        lock = self._lock
        try:
            return await self._queue._interruptible(_native.Token(), lambda: how(lock), waits=True)
        except asyncio.CancelledError:
            with contextlib.suppress(QueueError):
                await through_cancellation(self._queue._run_in_thread(lock.release))
            raise

    async def __aenter__(self) -> Self:
        await self._take(_native.Lock.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._lock is not None:
            await self._queue._run_in_thread(self._lock.__exit__, kind, error, None)

    @property
    def lost(self) -> bool:
        """Whether another holder has taken it over."""
        return self._lock is not None and self._lock.lost
