"""What can go wrong, by name. Every exception here pickles."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class QueueError(Exception):
    """Base of everything the queue raises for a reason of its own."""


class QueueBusyError(QueueError):
    """Another writer held the file longer than `busy_timeout`. Nothing was changed.

    Of verbs that go in small steps (`purge`, `prune`, `retry_failed`, `retry_all`) the steps before stay; the error
    tells of them.
    """


class QueueClosedError(QueueError):
    """The queue was closed before this call."""


class QueueFullError(QueueError):
    """As many items wait as `max_pending` allows. Nothing was written."""


class DuplicateItemError(QueueError):
    """An item has the key already, unfinished or within its `key_ttl`; `id` says which."""

    def __init__(self, message: str, id: int) -> None:
        super().__init__(message, id)
        self.id = id

    def __str__(self) -> str:
        return str(self.args[0])


class StaleClaimError(QueueError):
    """The claim was lost: somebody else may be working on the item."""


class PayloadTooLargeError(QueueError):
    """The content or the result is larger than `max_bytes`. Nothing was written."""


class ContentError(QueueError, ValueError):
    """The content that was claimed does not fit the type of the queue, or the arguments of its handler."""


class SchemaVersionError(QueueError):
    """The file was written by a newer version of membox_queue. It was not touched."""


class SettingsConflictError(QueueError):
    """An argument differs from the setting stored in the file."""


class StorageError(QueueError):
    """The file could not be read or written."""


class DiskFullError(StorageError):
    """No space left. The call, or its last small step, changed nothing and works again once there is space."""


class ReadOnlyError(StorageError):
    """The file or its directory cannot be written."""


class CorruptDatabaseError(StorageError):
    """The file is damaged. It was left as it is."""


class NotADatabaseError(StorageError):
    """The file is not an SQLite database. It was left as it is."""


class MissingDirectoryError(StorageError, FileNotFoundError):
    """The directory of the file does not exist."""


class ExistingFileError(StorageError, FileExistsError):
    """The file that was to be written exists already. It was left as it is."""


class SimulatedCrash(BaseException):
    """Raised by failure injection in tests: the process is to be taken for dead, so nobody gives anything back."""


class LoopStop(BaseException):
    """Raised by a loop itself to end one of its handlers."""


STOPS: tuple[type[BaseException], ...] = (KeyboardInterrupt, LoopStop)
"""What releases the item in hand uncounted and ends its loop; see `src/ending.rs` for everything else."""


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
    """Add a note to an exception, whatever its attributes do; one that takes none has it logged."""
    try:
        error.add_note(text)
    except Exception:
        logging.getLogger("membox_queue").warning("%s", text)


class RetryLater(Exception):  # noqa: N818 - a request, not an error
    """Raised by a handler: try this item again in so many seconds.

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
    """Raised by a handler: this item is failed for good, whatever its policy allows."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return str(self.reason or "the handler gave up")
