"""AsyncQueue: the same verbs, awaitable; SQLite never runs in the event loop's thread."""

from membox_queue.aio.item import AsyncItem
from membox_queue.aio.lock import AsyncLock
from membox_queue.aio.queue import AsyncQueue

__all__ = ["AsyncItem", "AsyncLock", "AsyncQueue"]
