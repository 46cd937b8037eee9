"""A durable work queue inside the SQLite file your Python app already has."""

from membox_queue._native import BY_CONTENT, Attempt, Item, NewItem, Retry, __version__
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
from membox_queue.queue import Queue, new_key

__all__ = [
    "BY_CONTENT",
    "Attempt",
    "CorruptDatabaseError",
    "DiskFullError",
    "DrainReport",
    "DuplicateItemError",
    "GiveUp",
    "Item",
    "NewItem",
    "NotADatabaseError",
    "PayloadTooLargeError",
    "Queue",
    "QueueBusyError",
    "QueueClosedError",
    "QueueError",
    "QueueFullError",
    "ReadOnlyError",
    "Retry",
    "RetryLater",
    "SchemaVersionError",
    "SettingsConflictError",
    "StaleClaimError",
    "StorageError",
    "__version__",
    "new_key",
]
