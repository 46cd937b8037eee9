"""The exceptions of the package. Every one can be pickled."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """The queue holds as many pending items as `max_pending` allows. Nothing was written."""


class DuplicateItemError(QueueError):
    """Another item has the key: it is unfinished, or ended within its `key_ttl`. `id` is its id."""

    def __init__(self, message: str, id: int) -> None:
        super().__init__(message, id)
        self.id = id

    def __str__(self) -> str:
        return str(self.args[0])


class StaleClaimError(QueueError):
    """The claim was lost: another worker may be handling the item."""


class PayloadTooLargeError(QueueError):
    """The content or the result is larger than `max_bytes`. Nothing was written."""


class ContentError(QueueError, ValueError):
    """The claimed content does not match the type of the queue, or the arguments of its handler."""


class SchemaVersionError(QueueError):
    """The file was written by a newer version of membox_queue. It was not changed."""


class SettingsConflictError(QueueError):
    """An argument differs from the setting stored in the file: `name`, `given`, `stored`, and the `queue`."""

    name: str
    queue: str
    given: object
    stored: object


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
    """The directory of the file does not exist."""


class ExistingFileError(StorageError, FileExistsError):
    """The file to write exists already. It was not changed."""


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
