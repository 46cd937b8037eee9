"""Left: items that `async for` loops left in the middle, until they are given back."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

from membox_queue.aio.waiting import settled
from membox_queue.errors import QueueError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor


class Left:
    """What loops over one queue left; true while something is yet to be given back."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.threads = threads
        self.releases: deque[Callable[[], Any]] = deque()
        self.returning: set[Future[Any]] = set()

    def __bool__(self) -> bool:
        return bool(self.releases or self.returning)

    def leave(self, release: Callable[[], Any], events: asyncio.AbstractEventLoop) -> None:
        """Take what gives one back; from any thread, in the middle of anything."""
        self.releases.append(release)
        try:
            events.call_soon_threadsafe(self.give_back)
        except RuntimeError:
            # Its event loop is closed, and the queue may never be used again.
            with contextlib.suppress(QueueError, IndexError):
                self.releases.pop()()

    def give_back(self) -> None:
        """Let threads give back what was left; event loops of several threads may come at once."""
        # A queue that was closed meanwhile has no threads; leases give back the rest.
        with contextlib.suppress(IndexError, RuntimeError):
            while True:
                returning = self.threads.submit(self.releases.popleft())
                self.returning.add(returning)
                returning.add_done_callback(self.returning.discard)

    async def given_back(self) -> None:
        """Wait until all is given back."""
        self.give_back()
        for returning in tuple(self.returning):
            with contextlib.suppress(QueueError):
                await settled(asyncio.wrap_future(returning))
