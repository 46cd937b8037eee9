"""A durable work queue inside the SQLite file your Python app already has.

Everything is loaded when it is first used: what needs no queue, like the pytest plugin in a project that has none,
does not load the native module.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from membox_queue._native import BY_CONTENT, Attempt, Item, NewItem, Rate, Retry, Schedule, __version__
    from membox_queue.aio.item import AsyncItem
    from membox_queue.aio.queue import AsyncQueue
    from membox_queue.drain import DrainReport
    from membox_queue.errors import (
        ContentError,
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
    from membox_queue.handler import AsyncHandler, Handler
    from membox_queue.progress import LoopEvent
    from membox_queue.queue import Queue, new_key
    from membox_queue.worker import Worker

__all__ = [
    "BY_CONTENT",
    "AsyncHandler",
    "AsyncItem",
    "AsyncQueue",
    "Attempt",
    "ContentError",
    "CorruptDatabaseError",
    "DiskFullError",
    "DrainReport",
    "DuplicateItemError",
    "GiveUp",
    "Handler",
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

ROOMS = ("errors", "queue", "drain", "progress", "worker", "_native", "aio", "handler")
"""Where the public names are looked for, in this order; asyncio is imported only by those who use it."""


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in __all__:
        for room in ROOMS:
            module = importlib.import_module(f"{__name__}.{room}")
            if name in vars(module):
                return globals().setdefault(name, vars(module)[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
