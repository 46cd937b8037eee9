"""The native module: every verb of a queue, its arguments, results and exceptions.

All calls may raise `QueueClosedError` after `close`, `QueueBusyError` when another writer holds the file longer than
`busy_timeout`, and `StorageError` or one of its subclasses when the file cannot be read or written. Wrong arguments are
`TypeError` or `ValueError`, and nothing is written. Every call releases the GIL once, before any lock is taken.

Seconds are numbers or `timedelta`. Times come back as aware datetimes in UTC.
"""

import os
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, final

from typing_extensions import disjoint_base

__all__ = [
    "BY_CONTENT",
    "Attempt",
    "ByContent",
    "Drain",
    "Item",
    "Lock",
    "NewItem",
    "Queue",
    "Retry",
    "__version__",
    "clock",
    "set_clock",
    "sqlite_version",
    "switch_off",
]

__version__: str
sqlite_version: str
"""The version of the SQLite this module carries."""

_Seconds: TypeAlias = float | timedelta
_Status: TypeAlias = Literal["pending", "processing", "done", "failed", "blocked", "cancelled"]

def set_clock(ms: int | None, /) -> None:
    """Stop the clock of all queues of this process at `ms` since 1970, for tests; None lets it run again."""

def clock() -> int:
    """What the queues' clock says, in milliseconds since 1970."""

def switch_off(*measures: str) -> None:
    """Leave out safety measures ("locks", "fork", "commit-check") so that tests can show what they are for.

    Only before the first queue is opened in this process. Files are damaged without them.
    """

@final
class Retry:
    """When a failed item goes back to pending by itself.

    The nth failure waits `base * factor ** (n - 1)` seconds (`kind="linear"`: `base * n`), at most `cap`, spread by
    `jitter` (0.1: up to ten per cent either way). The `max`th failure is final.
    """

    def __new__(
        cls,
        max: int = 5,
        base: _Seconds = 30,
        factor: float = 2.0,
        cap: _Seconds = 3600,
        jitter: float = 0.1,
        *,
        kind: Literal["exponential", "linear"] = "exponential",
    ) -> Self: ...
    @property
    def max(self) -> int: ...
    @property
    def base(self) -> float: ...
    @property
    def factor(self) -> float: ...
    @property
    def cap(self) -> float: ...
    @property
    def jitter(self) -> float: ...
    @property
    def kind(self) -> Literal["exponential", "linear"]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class ByContent:
    """The type of `BY_CONTENT`."""

BY_CONTENT: ByContent
"""As a key: made from the content, so that the same content is enqueued once."""

@final
class Attempt:
    """How one claim of an item ended."""

    @property
    def attempt(self) -> int: ...
    @property
    def ending(self) -> str:
        """done, failed, postponed (an automatic retry), lost (the lease ran out), released or cancelled."""
    @property
    def worker(self) -> str | None: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def ended_at(self) -> datetime | None: ...
    @property
    def error(self) -> str | None: ...

@final
class NewItem:
    """One element of `enqueue_many` with options of its own; see `Queue.enqueue` for them."""

    def __new__(
        cls,
        content: Any,
        *,
        project: str | None = None,
        source_path: str | os.PathLike[str] | None = None,
        doc_date: str | date | None = None,
        priority: int = 0,
        delay: _Seconds | None = None,
        run_at: datetime | None = None,
        max_retries: int | None = None,
        headers: dict[str, Any] | None = None,
        group: str | None = None,
        key: str | ByContent | None = None,
        key_ttl: _Seconds | None = None,
        on_duplicate: Literal["return", "raise", "replace"] = "return",
    ) -> Self: ...
    @property
    def content(self) -> Any: ...

@final
class Item:
    """One item as it was when it was claimed or read. It cannot be changed.

    A claimed item is a context manager: leaving the block normally marks it done, an exception marks it failed and goes
    on its way, and the claim is renewed by a native thread for as long as the block runs. KeyboardInterrupt and
    SystemExit give the item back uncounted. When the claim has ended before, entering raises `StaleClaimError`; when it
    was lost meanwhile, leaving normally does. A block that called `mark_done` or another verb itself is left alone.
    """

    @property
    def id(self) -> int: ...
    @property
    def queue(self) -> str: ...
    @property
    def content(self) -> Any:
        """What was enqueued: str, bytes, or a JSON value. The raw text if the row cannot be read as its type."""
    @property
    def project(self) -> str | None: ...
    @property
    def source_path(self) -> str | None: ...
    @property
    def doc_date(self) -> str | None: ...
    @property
    def status(self) -> str: ...
    @property
    def retries(self) -> int:
        """Failures and lost leases so far."""
    @property
    def error(self) -> str | None:
        """The last failure."""
    @property
    def result(self) -> Any:
        """What `mark_done` or the handler gave; None if nothing."""
    @property
    def priority(self) -> int: ...
    @property
    def headers(self) -> dict[str, Any]: ...
    @property
    def group(self) -> str | None: ...
    @property
    def key(self) -> str | None: ...
    @property
    def attempt(self) -> int:
        """How often it has been claimed. Never lowered."""
    @property
    def worker(self) -> str | None:
        """Who holds it, or finished it."""
    @property
    def max_retries(self) -> int | None:
        """Its own ceiling; None: the policy's or the queue's."""
    @property
    def enqueued_at(self) -> datetime:
        """1970 if another program wrote something that is no time."""
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def finished_at(self) -> datetime | None: ...
    @property
    def run_at(self) -> datetime | None:
        """When it falls due; None: now."""
    @property
    def lease_until(self) -> datetime | None:
        """When the claim ends, as it stood when the item was read; renewals do not change it."""
    @property
    def lost(self) -> bool:
        """Whether the claim is gone, asked of the file at that moment. False for an item that was only read."""
    @property
    def cancelled(self) -> bool:
        """Whether the item was cancelled, for a claimed one asked of the file at that moment."""
    def check(self) -> None:
        """Raise `StaleClaimError` if the claim is gone or the item was cancelled."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

@disjoint_base
class Queue:
    """A named queue in an SQLite file; `membox_queue.Queue` adds what is written in Python."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        lease: _Seconds = 60.0,
        max_retries: int = 3,
        retry: Retry | None = None,
        durability: Literal["full", "normal"] = "full",
        max_bytes: int = 67108864,
        busy_timeout: _Seconds = 30.0,
        worker: str | None = None,
        group_limit: int | None = None,
        max_pending: int | None = None,
    ) -> Self:
        """Open or create the queue.

        The file is put into WAL mode; its directory must exist. `":memory:"` is a private queue for tests. A file made
        by membox is extended in place.

        `lease` is how long a claim lasts without being renewed. `max_retries` is the ceiling of items that have no
        own: that failure or lost lease is final. With a `retry` policy failed items go back by themselves, without one
        they rest until `retry_failed` or `retry`. `durability="full"` means that what was acknowledged survives a power
        cut; `"normal"` may lose the last moments then. `max_bytes` limits content and results. `worker` names the
        holder of claims for people to read; by default host and process. `group_limit` lets so many items of one group
        run at once (one if nobody says otherwise); the first to give it stores it in the file, and a different one
        raises `SettingsConflictError`. `max_pending` bounds how many items may wait.

        Raises `NotADatabaseError`, `CorruptDatabaseError`, `ReadOnlyError` or `SchemaVersionError` without touching
        the file, and `FileNotFoundError` when the directory is missing.
        """
    @property
    def path(self) -> Path | None:
        """The file's absolute path; None in memory."""
    @property
    def name(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]:
        """What the queue was opened with, by the names of the arguments."""
    @property
    def closed(self) -> bool: ...
    def enqueue(
        self,
        content: Any,
        *,
        project: str | None = None,
        source_path: str | os.PathLike[str] | None = None,
        doc_date: str | date | None = None,
        priority: int = 0,
        delay: _Seconds | None = None,
        run_at: datetime | None = None,
        max_retries: int | None = None,
        headers: dict[str, Any] | None = None,
        group: str | None = None,
        key: str | ByContent | None = None,
        key_ttl: _Seconds | None = None,
        on_duplicate: Literal["return", "raise", "replace"] = "return",
        connection: Any = None,
        wait: _Seconds = 0.0,
    ) -> int:
        """Add one item and return its id. When it returns, the item is on disk.

        `content` is str, bytes or a JSON value (None, bool, int of 64 bits, finite float, str, list, dict with str
        keys) and comes back equal and of the same type; a tuple comes back as a list. What JSON cannot carry exactly is
        refused with an error that names its place. `priority`: higher first. `delay` and `run_at` (an aware datetime;
        the past means now) put it off. `headers` is a dict of JSON values for whoever handles the item.

        Items of one `group` run one at a time, in the order of their ids whatever their priority; an item that waits
        for its first delay does not hold its group up, one that waits for a retry does.

        At most one unfinished item has a `key`: when one exists, its id comes back and nothing is written. `key_ttl`
        keeps the key reserved for so long after the enqueueing, also when the item is finished by then.
        `key=BY_CONTENT` makes the key from the content. `on_duplicate="raise"` raises `DuplicateItemError` instead;
        `"replace"` gives the existing item the new content and options if it is still pending, else raises.

        With `connection`, one of sqlite3, apsw or SQLAlchemy (also a session) on the same file, the item is written by
        that library in your own transaction: it is there when you commit, and gone when you roll back. `max_pending` is
        not looked at then.

        Raises `PayloadTooLargeError` beyond `max_bytes`, and `QueueFullError` beyond `max_pending`, after having waited
        for room as long as `wait` says.
        """
    def enqueue_many(self, items: Iterable[Any], *, wait: _Seconds = 0.0) -> list[int]:
        """Add all items or none, in one transaction; returns their ids. Elements are contents or `NewItem`s."""
    def claim(self, *, wait: _Seconds = 0.0, lease: _Seconds | None = None, group: str | None = None) -> Item | None:
        """Take the next item: highest priority first, then order of arrival. None when nothing is due.

        With `wait`, blocks up to that long for work, without the GIL; `math.inf` waits for ever. `lease` overrides the
        queue's for this claim. `group` claims from one group only. Expired claims of others are taken back first. A
        paused queue gives nothing.
        """
    def claim_many(
        self, limit: int, *, wait: _Seconds = 0.0, lease: _Seconds | None = None, group: str | None = None
    ) -> list[Item]:
        """Take up to `limit` items in one transaction; an empty list when nothing is due."""
    def claim_group(self, *, wait: _Seconds = 0.0, lease: _Seconds | None = None) -> list[Item]:
        """Take everything pending of one group of which nothing is in work, in order, each with its own receipt.

        When one of them does not end well (failed, released, lost), those after it are given back uncounted.
        """
    def mark_done(self, item: Item, result: Any = None) -> bool:
        """Record that a claimed item is done, with a JSON result. False when the claim was lost: nothing changes.

        Raises `ValueError` for an item that was only read, or claimed from another queue.
        """
    def mark_done_many(self, items: Iterable[Item]) -> int:
        """Mark claimed items done in one transaction; returns how many took effect."""
    def mark_failed(
        self, item: Item, error: str | BaseException, retry_in: _Seconds | None = None, give_up: bool = False
    ) -> bool:
        """Record a failure and count it. False when the claim was lost: nothing changes.

        A string is stored as it is, an exception as `Name: text`; longer than 8 KiB is cut, with a mark. `retry_in`
        sends it back in so many seconds whatever the policy says, unless this failure is the last allowed; `give_up`
        makes it final. `RetryLater` and `GiveUp` say the same here as in a handler.
        """
    def release(self, item: Item, delay: _Seconds = 0.0) -> bool:
        """Give a claimed item back; nothing is counted. False when the claim was lost."""
    def extend(self, item: Item, seconds: _Seconds) -> bool:
        """Let the lease end so many seconds from now. False when the claim was lost.

        A lease that ran out can be extended as long as nobody has taken the item back. While a native thread renews
        the claim (in `drain` and `with item:`), the lease is only made longer, never shorter.
        """
    def retry_failed(self, max_retries: int | None = None, *, delay: _Seconds = 0.0) -> int:
        """Bring failed items below their ceiling back to pending; returns how many.

        `max_retries` replaces every item's ceiling for this call; `delay` puts them off. Items that were given up stay,
        and so do items whose key is in use again.
        """
    def retry(self, id: int) -> bool:
        """Bring one failed or cancelled item back with a fresh allowance, in its old place.

        False if it is neither, or if its key is in use again.
        """
    def replay(self, id: int) -> int | None:
        """Enqueue a copy of any item, without its key, and return the new id; None if there is no such item."""
    def run_now(self, id: int) -> bool:
        """Let a delayed item fall due at once. False if it does not wait for a time."""
    def cancel(self, id: int) -> bool:
        """Cancel an unfinished item. False if it is finished or cancelled already.

        An item that is being worked on comes to rest when its holder reports or its lease ends; until then
        `item.cancelled` tells the holder, whose receipt is worth nothing any more.
        """
    def purge(self, status: _Status = "failed") -> int:
        """Remove all items of one status, in small steps; returns how many."""
    def prune(self, older_than: _Seconds, *, status: Literal["done", "failed", "cancelled"] = "done") -> int:
        """Remove items of a finished status that ended longer ago than that, in small steps; returns how many.

        Items whose key is still reserved stay.
        """
    def compact(self) -> None:
        """Rewrite the file without the space that removed rows left, and empty its log. Others wait meanwhile."""
    def lock(self, name: str, *, ttl: _Seconds = 30.0, wait: _Seconds = 0.0) -> Lock:
        """A lock of the whole file by its name, on the rules of the worker lease: `with queue.lock("nightly"): …`."""
    def stats(self) -> dict[str, Any]:
        """The queue at a glance.

        `counts`, `oldest_pending_age` in seconds, `next_due_at` (a datetime), `groups` with unfinished items, `paused`
        and `worker_is_alive`.
        """
    def pause(self) -> bool:
        """Let nobody claim from this queue, in any process, until `resume`. False if it was paused already."""
    def resume(self) -> bool:
        """End a pause. False if there was none."""
    @property
    def paused(self) -> bool: ...
    def history(self, id: int) -> list[Attempt]:
        """How an item's attempts ended, oldest first; the latest twenty."""
    def group_counts(self) -> dict[str, dict[str, int]]:
        """Unfinished items of each group: `{"coder": {"pending": 2, "processing": 1}}`."""
    def delete(self, id: int) -> bool:
        """Remove an item, whatever its status. A receipt for it is worth nothing from then on."""
    def get(self, id: int | None = None, *, key: str | None = None) -> Item | None:
        """One item of this queue: by its id, or the newest with this key. None if there is none."""
    def items(
        self,
        status: _Status | None = None,
        *,
        project: str | None = None,
        limit: int = 50,
        after: int | None = None,
        newest_first: bool = False,
    ) -> list[Item]:
        """A page of items in the order of their ids; `after` is the last id of the page before."""
    def counts(self) -> dict[str, int]:
        """How many items of this queue stand in each status, zeros included."""
    def pending(self) -> int:
        """How many items wait or are being worked on."""
    def failures(self, limit: int = 5) -> list[Item]:
        """The latest failed items, newest first."""
    def acquire_worker_lease(self, ttl: _Seconds = 60.0) -> bool:
        """Take the right to be the one worker of this queue. False while anybody, this object too, holds it live."""
    def refresh_worker_lease(self) -> bool:
        """Renew this object's lease. False if it has none or it was taken over."""
    def release_worker_lease(self) -> bool:
        """Give this object's lease back. False if it has none or it was taken over."""
    def worker_is_alive(self) -> bool:
        """Whether anybody holds the worker lease live."""
    def _begin_drain(self, ttl: _Seconds = 60.0) -> Drain | None:
        """Take the worker lease for a drain loop; None when another live worker holds it. `drain` uses this."""
    def close(self) -> None:
        """End this object's use of the file and give back a worker lease it holds. Closing twice is closing once."""

@final
class Lock:
    """A named lock; entering its `with` block raises `QueueBusyError` while somebody else holds it.

    A native thread renews it until it is given back.
    """

    @property
    def name(self) -> str: ...
    @property
    def lost(self) -> bool:
        """Whether somebody else has taken it over."""
    def acquire(self) -> bool:
        """Take it, waiting as long as `wait` says. False while somebody holds it live."""
    def release(self) -> bool:
        """Give it back. False if it was not held, or was taken over."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

@final
class Drain:
    """The native half of a drain loop: holds the worker lease and one item, both renewed by a native thread."""

    def first(self) -> Item | None:
        """Claim the first item. None when nothing is due; the lease was given back in the same transaction."""
    def done(self, result: Any, /) -> tuple[str, Item | None]:
        """Record the item in hand as done and claim the next, in one transaction. Says how it was settled."""
    def failed(self, exception: BaseException, /) -> tuple[str, Item | None]:
        """Record what the handler raised and claim the next, in one transaction. Says how it was settled."""
    def close(self) -> bool:
        """Give back what is still held, uncounted, and the lease. Says whether an item was given back."""
