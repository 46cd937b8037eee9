"""A durable work queue inside the SQLite file your Python app already has."""

import atexit
import concurrent.futures.thread  # noqa: F401 - its threads are joined after our waits have ended
import threading
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue._native import BY_CONTENT, Attempt, Item, NewItem, Rate, Retry, Schedule, __version__
from membox_queue.drain import DrainReport
from membox_queue.errors import (
    CorruptDatabaseError,
    DiskFullError,
    DuplicateItemError,
    GiveUp,
    NotADatabaseError,
    PayloadTooLargeError,
    QueueBusyError,
    QueueClosedError,
    QueueError,
    QueueFullError,
    ReadOnlyError,
    RetryLater,
    SchemaVersionError,
    SettingsConflictError,
    StaleClaimError,
    StorageError,
)
from membox_queue.progress import LoopEvent
from membox_queue.queue import Queue, new_key
from membox_queue.worker import Worker

if TYPE_CHECKING:
    from membox_queue.aio import AsyncItem, AsyncQueue

__all__ = [
    "BY_CONTENT",
    "AsyncItem",
    "AsyncQueue",
    "Attempt",
    "CorruptDatabaseError",
    "DiskFullError",
    "DrainReport",
    "DuplicateItemError",
    "GiveUp",
    "Item",
    "LoopEvent",
    "NewItem",
    "NotADatabaseError",
    "PayloadTooLargeError",
    "Queue",
    "QueueBusyError",
    "QueueClosedError",
    "QueueError",
    "QueueFullError",
    "Rate",
    "ReadOnlyError",
    "Retry",
    "RetryLater",
    "Schedule",
    "SchemaVersionError",
    "SettingsConflictError",
    "StaleClaimError",
    "StorageError",
    "Worker",
    "__version__",
    "new_key",
]


def __getattr__(name: str) -> Any:
    # asyncio is imported only by those who use it.
    if name in ("AsyncItem", "AsyncQueue"):
        from membox_queue import aio

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# When the interpreter exits, waits end before threads are joined, and no thread comes back from native code after that.
getattr(threading, "_register_atexit", atexit.register)(_native.end_waits)
atexit.register(_native.be_last)
