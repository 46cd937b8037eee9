"""The exceptions of the package. Every one can be pickled, with what it carries.

An attribute that is not known where the error was raised is None.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class QueueError(Exception):
    """Base of all errors that the queue raises for a reason of its own."""


class QueueBusyError(QueueError):
    """Another writer held the file longer than `busy_timeout`. Nothing was changed.

    `purge`, `prune`, `retry_failed`, and `retry` and `replay` of several items work in batches: committed batches are
    kept, and the message says how many items they held.
    """


class QueueClosedError(QueueError):
    """The queue was closed before this call."""


class QueueFullError(QueueError):
    """The queue holds as many pending items as `max_pending` allows. Nothing was written.

    `queue` is its name, `limit` its `max_pending`, and `pending` how many items it would have held. A batch that is
    larger than the limit has no `pending`: it never fits.
    """

    queue: str | None = None
    limit: int | None = None
    pending: int | None = None


class DuplicateItemError(QueueError):
    """Another item has the `key`: it is unfinished, or ended within its `key_ttl`. `id` is its id."""

    key: str | None = None

    def __init__(self, message: str, id: int) -> None:
        super().__init__(message, id)
        self.id = id

    def __str__(self) -> str:
        return str(self.args[0])


class NeededItemError(QueueError):
    """The item `id` cannot be deleted: the items `needed_by` wait for it or need its result. Nothing was removed."""

    def __init__(self, message: str, id: int, needed_by: list[int]) -> None:
        super().__init__(message, id, needed_by)
        self.id = id
        self.needed_by = needed_by

    def __str__(self) -> str:
        return str(self.args[0])


class StaleClaimError(QueueError):
    """The claim was lost: another worker may be handling the item. `id` and `queue` say which item."""

    id: int | None = None
    queue: str | None = None


class PayloadTooLargeError(QueueError):
    """The content or the result is larger than `max_bytes`. Nothing was written. `size` and `limit` are in bytes."""

    size: int | None = None
    limit: int | None = None


class ContentError(QueueError, ValueError):
    """The claimed content does not match the type of the queue, or the arguments of its handler."""


class SchemaVersionError(QueueError):
    """The file was written by a newer version of membox_queue. It was not changed.

    `found` is the schema version of the file, `known` the latest that this version knows.
    """

    found: int | None = None
    known: int | None = None


class SettingsConflictError(QueueError):
    """An argument differs from the setting stored in the file.

    `name` is the setting and `queue` the queue; `given` and `stored` are its two values.
    """

    name: str | None = None
    queue: str | None = None
    given: Any = None
    stored: Any = None


class StorageError(QueueError):
    """The file could not be read or written."""


class DiskFullError(StorageError):
    """No space is left. The call, or its last batch, changed nothing; it can be repeated once there is space."""


class ReadOnlyError(StorageError):
    """The file or its directory cannot be written."""


class CorruptDatabaseError(StorageError):
    """The file is damaged. It was not changed."""


class NotADatabaseError(StorageError):
    """The file is not an SQLite database. It was not changed."""


class MissingDirectoryError(StorageError, FileNotFoundError):
    """The directory of the file does not exist. `path` is the directory or the file."""

    path: Path | None = None


class ExistingFileError(StorageError, FileExistsError):
    """The file to write exists already, or one that SQLite would read with it: `path`. It was not changed."""

    path: Path | None = None


class Suspended(BaseException):
    """Leaves a handler that sleeps or gathers. It is called again later; `except Exception` does not catch this."""


class SimulatedCrash(BaseException):
    """Raised by failure injection in tests. It stands for the death of the process, so nothing is released."""


class LoopStop(BaseException):
    """Raised by a loop itself to end one of its handlers."""


STOPS: tuple[type[BaseException], ...] = (KeyboardInterrupt, LoopStop)
"""Exceptions that release the running item uncounted and end its loop; `src/ending.rs` has the other rules."""


def end_loops_on(*kinds: type[BaseException]) -> Callable[[], None]:
    """Let these exceptions release a running item uncounted and end its loop. Return a function that undoes this."""
    global STOPS
    STOPS += kinds

    def undo() -> None:
        global STOPS
        rest = list(STOPS)
        for kind in kinds:
            rest.remove(kind)
        STOPS = tuple(rest)

    return undo


def note(error: BaseException, text: str) -> None:
    """Add a note to an exception; if that raises, log the note."""
    try:
        error.add_note(text)
    except Exception:
        logging.getLogger("membox_queue").warning("%s", text)


class RetryLater(Exception):  # noqa: N818 - a request, not an error
    """Raised by a handler: try this item again after this number of seconds.

    With `count=False` the attempt is not counted as a failure.
    """

    def __init__(self, seconds: float | timedelta, count: bool = True, reason: str | None = None) -> None:
        super().__init__(seconds, count, reason)
        number = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        if not isinstance(number, int | float):
            raise TypeError(f"RetryLater takes seconds or a timedelta, not {type(seconds).__qualname__}")
        if not 0 <= number < float("inf"):
            raise ValueError(f"RetryLater takes a finite number of seconds, zero or more, not {seconds}")
        self.seconds = seconds
        self.count = count
        self.reason = reason

    def __str__(self) -> str:
        return str(self.reason or f"asked to be retried in {self.seconds} s")


class GiveUp(Exception):  # noqa: N818 - a request, not an error
    """Raised by a handler: fail this item now, even if its policy allows more retries."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.reason or "the handler gave up")
