"""`async for item in queue`: claims items, and releases those that a loop abandons."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from membox_queue.aio.threads import result_despite_cancellation, through_cancellation
from membox_queue.errors import QueueError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Self

    from membox_queue.aio.item import AsyncItem
    from membox_queue.aio.queue import AsyncQueue

C = TypeVar("C")


class ItemIterator(Generic[C]):
    """Claims forever. Each item is renewed until `async with item:` ends it, and released if nothing did.

    It is released when the next one is asked for, at `aclose`, or when the loop is left. A later verb of the queue,
    including `close`, waits for that release.
    """

    def __init__(self, queue: AsyncQueue[C]) -> None:
        self._queue = queue
        self._events: asyncio.AbstractEventLoop | None = None
        self._current: AsyncItem[C] | None = None
        self._is_claiming = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncItem[C]:
        if self._is_closed:
            raise StopAsyncIteration
        if self._is_claiming:
            raise RuntimeError("another task waits for the next item of this loop; give each task a loop of its own")
        self._is_claiming = True
        self._events = asyncio.get_running_loop()
        try:
            await self._release_current()
            while (item := await self._queue.claim(wait=math.inf)) is None:
                pass
            self._current = item
            await item._keep()
        except BaseException:
            await through_cancellation(self._release_current())
            raise
        finally:
            self._is_claiming = False
        return item

    async def aclose(self) -> None:
        """End the loop, and release the current item."""
        self._is_closed = True
        await through_cancellation(self._release_current())

    async def _release_current(self) -> None:
        if (item := self._take_current()) is not None:
            queue = await self._queue._opened()
            await self._queue._run_in_thread(queue._release_abandoned, item._item)

    def _take_current(self) -> AsyncItem[Any] | None:
        """Return the current item if its claim has not ended, and forget it."""
        item, self._current = self._current, None
        return None if item is None or item._item._settled else item

    def __del__(self) -> None:
        if (item := self._take_current()) is not None and self._events is not None:
            self._queue._abandon(item, self._events)


class Abandoned:
    """Items that `async for` loops over one queue abandoned; true until all are released."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.threads = threads
        self.releases: deque[Callable[[], Any]] = deque()
        self.releasing: set[Future[Any]] = set()

    def __bool__(self) -> bool:
        return bool(self.releases or self.releasing)

    def add(self, release: Callable[[], Any], events: asyncio.AbstractEventLoop) -> None:
        """Take the call that releases one item; from any thread, even during garbage collection."""
        self.releases.append(release)
        try:
            events.call_soon_threadsafe(self.release)
        except RuntimeError:
            # Its event loop is closed, and the queue may never be used again.
            with contextlib.suppress(QueueError, IndexError):
                self.releases.pop()()

    def release(self) -> None:
        """Release the items in threads; event loops of several threads may call this at once."""
        # A queue that was closed meanwhile has no threads; the leases of the rest expire.
        with contextlib.suppress(IndexError, RuntimeError):
            while True:
                releasing = self.threads.submit(self.releases.popleft())
                self.releasing.add(releasing)
                releasing.add_done_callback(self.releasing.discard)

    async def released(self) -> None:
        """Wait until all items are released."""
        self.release()
        for releasing in tuple(self.releasing):
            with contextlib.suppress(QueueError):
                await result_despite_cancellation(asyncio.wrap_future(releasing))
