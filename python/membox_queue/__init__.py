"""A durable work queue inside the SQLite file your Python app already has.

Everything is loaded when it is first used: a program that opens no queue does not load the native module, even if the
pytest plugin is installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from membox_queue._native import (
        BY_CONTENT,
        Attempt,
        Item,
        NewItem,
        Next,
        Node,
        Rate,
        Retry,
        Schedule,
        WorkerInfo,
        __version__,
    )
    from membox_queue.aio.item import AsyncItem
    from membox_queue.aio.queue import AsyncQueue
    from membox_queue.errors import (
        ContentError,
        CorruptDatabaseError,
        DiskFullError,
        DuplicateItemError,
        ExistingFileError,
        GiveUp,
        MissingDirectoryError,
        NeededItemError,
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
    from membox_queue.loops.handler import AsyncHandler, Handler
    from membox_queue.loops.progress import LoopEvent
    from membox_queue.loops.report import DrainReport
    from membox_queue.queue import Queue, new_key
    from membox_queue.removal import remove
    from membox_queue.workers.pool import Worker

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
    "ExistingFileError",
    "GiveUp",
    "Handler",
    "Item",
    "LoopEvent",
    "MissingDirectoryError",
    "NeededItemError",
    "NewItem",
    "Next",
    "Node",
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
    "WorkerInfo",
    "__version__",
    "new_key",
    "remove",
]

MODULES = {
    "BY_CONTENT": "_native",
    "AsyncHandler": "loops.handler",
    "AsyncItem": "aio.item",
    "AsyncQueue": "aio.queue",
    "Attempt": "_native",
    "ContentError": "errors",
    "CorruptDatabaseError": "errors",
    "DiskFullError": "errors",
    "DrainReport": "loops.report",
    "DuplicateItemError": "errors",
    "ExistingFileError": "errors",
    "GiveUp": "errors",
    "Handler": "loops.handler",
    "Item": "_native",
    "LoopEvent": "loops.progress",
    "MissingDirectoryError": "errors",
    "NeededItemError": "errors",
    "NewItem": "_native",
    "Next": "_native",
    "Node": "_native",
    "NotADatabaseError": "errors",
    "PayloadTooLargeError": "errors",
    "Queue": "queue",
    "QueueBusyError": "errors",
    "QueueClosedError": "errors",
    "QueueError": "errors",
    "QueueFullError": "errors",
    "Rate": "_native",
    "ReadOnlyError": "errors",
    "Retry": "_native",
    "RetryLater": "errors",
    "Schedule": "_native",
    "SchemaVersionError": "errors",
    "SettingsConflictError": "errors",
    "StaleClaimError": "errors",
    "StorageError": "errors",
    "Worker": "workers.pool",
    "WorkerInfo": "_native",
    "__version__": "_native",
    "new_key": "queue",
    "remove": "removal",
}
"""Where each public name is defined; asyncio is imported only by programs that use it."""
SUBMODULES = frozenset(("_native", "aio", "errors", "queue"))
"""Modules that can be read as attributes without importing them first."""


def __getattr__(name: str) -> Any:
    if name in MODULES:
        module = importlib.import_module(f"{__name__}.{MODULES[name]}")
        return globals().setdefault(name, getattr(module, name))
    if name in SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
