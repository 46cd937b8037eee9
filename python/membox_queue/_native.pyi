"""The native module: every verb of a queue, its arguments, results and exceptions.

All calls may raise `QueueClosedError` after `close`, `QueueBusyError` when another writer holds the file longer than
`busy_timeout`, and `StorageError` or one of its subclasses when the file cannot be read or written. Wrong arguments are
`TypeError` or `ValueError`, and nothing is written. Every call releases the GIL once, before any lock is taken.

Seconds are numbers or `timedelta`. Times are returned as aware datetimes in UTC.
"""

# Above 400 lines: one native module has one stub, and the stub is the reference of every verb.

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import date, datetime, timedelta
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, Unpack, final, overload
from zoneinfo import ZoneInfo

from typing_extensions import TypeVar, disjoint_base

from membox_queue.options import QueueSettings
from membox_queue.options import Status as _Status

__all__ = [
    "BY_CONTENT",
    "Attempt",
    "AwaitedEnd",
    "Block",
    "ByContent",
    "ClaimPlan",
    "Enlistment",
    "Item",
    "Lock",
    "LoopStep",
    "NewItem",
    "Next",
    "Node",
    "Queue",
    "Rate",
    "Retry",
    "Schedule",
    "Statement",
    "Token",
    "Watcher",
    "WorkerInfo",
    "WorkerLoop",
    "__version__",
    "arm_fault",
    "clock",
    "copied_item",
    "disarm_fault",
    "end_waits",
    "has_queue",
    "keep_other_threads_out",
    "meaning",
    "remove",
    "set_clock",
    "set_runner",
    "set_transaction",
    "sqlite_version",
    "switch_off",
]

__version__: str
sqlite_version: str
"""The version of the SQLite this module carries."""

_R = TypeVar("_R")
_T = TypeVar("_T", default=Any)
_T_co = TypeVar("_T_co", default=Any, covariant=True)
_Seconds: TypeAlias = float | timedelta

class _WithId(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def attempt(self) -> int: ...

class _NamedQueue(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> Path | None: ...

class _LeaseHolder(TypedDict):
    pid: int
    hostname: str
    heartbeat: datetime

class _Stats(TypedDict):
    counts: dict[str, int]
    delayed: int
    stuck: list[int]
    oldest_pending_age: float | None
    next_due_at: datetime | None
    groups: int
    paused: bool
    worker_is_alive: bool
    worker: _LeaseHolder | None
    workers: list[WorkerInfo]

def set_clock(ms: int | None, /) -> None:
    """Stop the clock of all queues of this process at `ms` since 1970, for tests; None lets it run again."""

def clock() -> int:
    """What the queues' clock says, in milliseconds since 1970."""

def has_queue(path: str | os.PathLike[str], /) -> bool:
    """Whether a file that exists has a queue in it, ours or membox's; nothing is written, and no queue is made."""

def remove(path: str | os.PathLike[str], discard: bool, dry_run: bool, /) -> tuple[int, int, list[str]]:
    """Remove the queue from a file; `membox_queue.remove` says how."""

def set_transaction(factory: Callable[[Any, Block], Any], /) -> None:
    """Set what `item.transaction` calls with a connection and a block."""

def meaning(
    exception: BaseException, is_cancelled: bool = False, /
) -> Literal["failed", "exited", "released", "suspended", "crashed"]:
    """What something raised by a loop's handler means for its item; `is_cancelled`: the task that ran it was.

    "failed": the item fails and the loop goes on. "exited": the item counts as a lost claim does, and the loop ends.
    "released": the item is released uncounted, and the loop ends. "suspended": the item sleeps or waits for others, and
    the loop goes on. "crashed": nothing is recorded.
    """

def copied_item(fields: dict[str, Any], /) -> Item[Any]:
    """Make the copy of an item from what `as_dict` returned. Pickle calls this."""

def set_runner(runner: Callable[[Any, Path | None, Enlistment], Any], /) -> None:
    """Give native code what runs the statements of a verb on the caller's connection, once."""

def end_waits() -> None:
    """End all waits of other threads with `QueueClosedError`: the interpreter is about to exit."""

def keep_other_threads_out() -> None:
    """Let no other thread go back to Python from native code any more: the interpreter exits."""

def arm_fault(
    fault: Literal["busy", "disk_full", "crash_before", "crash_after"],
    verb: Literal["enqueue", "claim", "finish"] | None,
    times: int | None,
    /,
) -> int:
    """Let something go wrong in this process at the next verbs of a kind (None: of any), for tests.

    It goes off that many times (None: until it is disarmed); the number disarms it. `membox_queue.testing` uses this.
    """

def disarm_fault(number: int, /) -> bool:
    """Disarm a fault. False if it has gone off as often as it was to."""

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
    def max(self) -> int:
        """The failure that is final."""
    @property
    def base(self) -> float:
        """Seconds before the first retry."""
    @property
    def factor(self) -> float:
        """What each wait is multiplied by for the next one."""
    @property
    def cap(self) -> float:
        """The longest wait in seconds."""
    @property
    def jitter(self) -> float:
        """How far a wait is spread at random: 0.1 is up to ten per cent either way."""
    @property
    def kind(self) -> Literal["exponential", "linear"]:
        """How waits grow: "exponential" or "linear"."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Rate:
    """How many items may be claimed in a period: never more than `count` in any `per` seconds.

    It is counted in the file, over all processes. Every claim counts, including one that is released.
    """

    def __new__(cls, count: int, per: _Seconds = 60.0) -> Self: ...
    @property
    def count(self) -> int:
        """How many items may be claimed in a period."""
    @property
    def per(self) -> float:
        """The period in seconds."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Schedule:
    """Something that is enqueued again and again; as it was when it was read."""

    @property
    def name(self) -> str:
        """Its name; a queue has one schedule of a name."""
    @property
    def content(self) -> Any:
        """As it is stored."""
    @property
    def cron(self) -> str | None:
        """Its pattern; None if it ticks at an interval."""
    @property
    def every(self) -> float | None:
        """Seconds between two ticks."""
    @property
    def tz(self) -> str:
        """The time zone in which the pattern is read."""
    @property
    def next_at(self) -> datetime:
        """When it ticks next."""
    @property
    def last_at(self) -> datetime | None:
        """When it ticked last."""
    @property
    def last_id(self) -> int | None:
        """What it enqueued last."""
    @property
    def project(self) -> str | None:
        """Its items' project."""
    @property
    def source_path(self) -> str | None:
        """Its items' source path."""
    @property
    def doc_date(self) -> str | None:
        """Its items' date."""
    @property
    def priority(self) -> int:
        """Its items' priority."""
    @property
    def max_retries(self) -> int | None:
        """Its items' retry limit; None: the policy's or the queue's."""
    @property
    def headers(self) -> dict[str, Any]:
        """Its items' headers."""
    @property
    def group(self) -> str | None:
        """Its items' group."""
    @property
    def key(self) -> str | None:
        """Its items' key."""

@final
class Statement:
    """A statement for the caller's own connection; its parameters have numbers."""

    @property
    def sql(self) -> str:
        """Its text."""
    @property
    def values(self) -> list[Any]:
        """Its parameters."""
    @property
    def returns_rows(self) -> bool:
        """Whether its rows are to be read."""
    @property
    def block(self) -> Literal["begin", "savepoint", "release", "undo", "commit", "roll_back"] | None:
        """What it does to the block of `item.transaction`; a library with account of its transactions does that."""

@final
class Enlistment:
    """A verb on the caller's own connection; `membox_queue.connections` runs its statements.

    Each method returns the statement to run next or, at the end, the result: the ids of items, a schedule, whether the
    item was changed, how many were.
    """

    @property
    def location(self) -> Statement:
        """Returns which file the connection is open on."""
    def begin(self, is_inside: bool, /) -> Statement | list[int] | Schedule | bool | int | None:
        """Begin; `is_inside` says whether a transaction is open: then the verb is a savepoint, else it begins one."""
    def next(self, rows: list[tuple[Any, ...]], /) -> Statement | list[int] | Schedule | bool | int | None:
        """Go on after a statement that returned these rows."""
    def failed(self, exception: Exception, /) -> Statement | list[int] | Schedule | bool | int | None:
        """Go on after a statement that the library refused. Raises the exception if that is the end."""

@final
class Block:
    """The native half of `item.transaction`; `membox_queue.connections` runs its statements."""

    @property
    def item(self) -> Item[Any]:
        """The item whose claim ends in the block."""
    @property
    def path(self) -> Path | None:
        """The file of its queue; None in memory."""
    @property
    def location(self) -> Statement:
        """Returns which file the connection is open on."""
    def enter(self, is_open: bool, is_begun: bool, /) -> Enlistment:
        """Begin the block and present the receipt.

        `is_open` says whether the caller has begun a transaction, `is_begun` whether the connection itself has one.
        """
    def leave(self, exception: BaseException | None, is_cancelled: bool | None, is_begun: bool, /) -> Enlistment:
        """Leave the block on the connection. If that fails, the block is undone, and is left again with the failure."""
    def mark_recorded(self) -> None:
        """Note that the failure is recorded on the connection."""
    def settle(self, exception: BaseException | None, is_cancelled: bool | None, /) -> None:
        """Record what the connection could not, once it has done its part."""

@final
class Token:
    """Ends one wait from another thread; `AsyncQueue` cancels through it."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None:
        """End the wait; a later one ends at once."""
    def call(self, function: Callable[[], _R], /) -> _R:
        """Call a function; once this is cancelled, its waits for writers or room end with `QueueBusyError`."""

@final
class ClaimPlan:
    """How `AsyncQueue` claims, and how many seconds it waits; `inf` means without end."""

    @property
    def wait(self) -> float:
        """How many seconds to wait for work."""

@final
class Watcher:
    """Waits for all tasks that wait for something in a file. Each has a ticket and is told when it has its turn."""

    def draw(self) -> int:
        """Return a ticket that no other task has."""
    def await_ending(self, ticket: int, queue: Queue[Any], id: int, /) -> bool:
        """Wait for the end of an item. Return whether a thread that calls `turns` is to be started."""
    def join_line(self, ticket: int, queue: Queue[Any], plan: ClaimPlan, /) -> bool:
        """Enter the line of those who claim the same. Return whether the ticket has its turn at once."""
    def join_line_for_room(self, ticket: int, queue: Queue[Any], count: int, /) -> bool:
        """Enter the line of tasks that wait for room for this many items. Return whether it has its turn at once."""
    def await_turn(self, ticket: int, /) -> bool:
        """Wait for a turn in line, in the old place. Return whether a thread that calls `turns` is to be started."""
    def leave(self, ticket: int, /) -> bool:
        """Give a ticket back; its turn goes to the next. Return whether an awaited item was looked at once."""
    def turns(self) -> list[tuple[list[int], Item[Any] | None]] | None:
        """Wait for turns, half a second at most; None when no task has waited for a while and the thread may end.

        An item comes with the tickets of those who waited for its end; others are to look for themselves.
        """
    def close_if_idle(self) -> None:
        """Close what is open for watching, if no task waits."""

@final
class ByContent:
    """The type of `BY_CONTENT`."""

BY_CONTENT: ByContent
"""As a key: made from the content, so that the same content is not enqueued twice while it waits or is handled.

Once the item has ended, the same content is accepted again. With `key_ttl=math.inf` it never is.
"""

@final
class Attempt:
    """How one claim of an item ended."""

    @property
    def attempt(self) -> int:
        """Its number, from 1."""
    @property
    def ending(self) -> Literal["done", "failed", "postponed", "lost", "released", "cancelled", "moved", "blocked"]:
        """How it ended.

        done, failed, postponed (an automatic retry, or `item.sleep`), lost (the lease ran out), released, cancelled,
        moved (to its next stage) or blocked (until what it waits for is done).
        """
    @property
    def worker(self) -> str | None:
        """Who had claimed the item."""
    @property
    def started_at(self) -> datetime | None:
        """When the item was claimed."""
    @property
    def ended_at(self) -> datetime | None:
        """When the claim ended."""
    @property
    def error(self) -> str | None:
        """Why it failed; None if it did not."""
    @property
    def queue(self) -> str:
        """The queue the item was in."""
    @property
    def stage(self) -> int:
        """The stage the item was in, from 0."""
    @property
    def content(self) -> Any:
        """The content of a stage that is behind the item; None for an attempt that did not end as moved."""

@final
class WorkerInfo:
    """A loop that runs, or a process that holds items or a worker lease without a loop; see `Queue.workers`."""

    @property
    def name(self) -> str:
        """The name of the worker, as `Item.worker` has it: host and process id by default."""
    @property
    def pid(self) -> int | None:
        """The process id; None for a process that only holds items."""
    @property
    def host(self) -> str | None:
        """The name of the host; None for a process that only holds items."""
    @property
    def since(self) -> datetime | None:
        """When the loop began; without a loop, when the first of the items was claimed."""
    @property
    def kind(self) -> Literal["work", "drain"] | None:
        """work: until stopped. drain: until nothing is due. None: no loop."""
    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues that the loop serves; without a loop, those of the items."""
    @property
    def item_ids(self) -> tuple[int, ...]:
        """The items in progress, in the order of their ids.

        They are known by process: of two loops of one process that serve the same queue, the first shows them.
        """
    @property
    def alive(self) -> bool:
        """Whether the process lives. Items of a dead one are reclaimed by the next claim."""
    @property
    def stopping(self) -> bool:
        """Whether the loop was asked to stop: it claims no more, and running handlers may finish."""

@final
class NewItem(Generic[_T_co]):
    """One element of `enqueue_many` with options of its own; see `Queue.enqueue` for them.

    - `queue`: the queue it goes into, by default the one that enqueues it: a name, or a `Queue` or `AsyncQueue` of the
      same file. The content is converted by the type of a queue given as an object; for a name it must be JSON.

    Its content is checked when it is enqueued.
    """

    @overload
    def __new__(
        cls,
        content: _T_co,
        *,
        queue: None = None,
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
        on_duplicate: Literal["return", "raise", "replace", "skip"] = "return",
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
        expires: _Seconds | None = None,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        content: Any,
        *,
        queue: str | _NamedQueue,
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
        on_duplicate: Literal["return", "raise", "replace", "skip"] = "return",
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
        expires: _Seconds | None = None,
    ) -> NewItem[Any]: ...
    def __class_getitem__(cls, kind: Any) -> GenericAlias: ...
    @property
    def content(self) -> _T_co:
        """What is to be enqueued."""

@final
class Next(Generic[_T_co]):
    """What a handler returns to let its item go on with the next stage; `mark_done` takes it, too.

    The item stays the same: it has another queue or content, and its `stage` is one higher. Its id, key, place and
    everything that is left out stay as they are. Only `retries` is 0 again.

    - `content`: what the next handler gets.
    - `queue`: the queue it goes into: a name, or a `Queue` or `AsyncQueue` of the same file. The content is converted
      by the type of a queue given as an object; for the name of another queue it must be JSON.
    - `delay`, `run_at`: when the stage is due; by default now.
    - `priority`, `group`, `headers`, `project`, `max_retries`: as in `Queue.enqueue`. None removes a group, the
      headers, a project or a retry limit of its own.
    - `expires`: in how many seconds the item is cancelled; None: never.
    - `after`, `if_failed`: what the stage waits for, as in `Queue.enqueue`; by default nothing. New items are children
      of this one, as those of `Item.enqueue` are. An item that would wait for itself fails the attempt.

    Content that cannot be stored fails the attempt, and the stage does not change.
    """

    def __new__(
        cls,
        content: _T_co = ...,
        *,
        queue: str | _NamedQueue | None = None,
        delay: _Seconds | None = None,
        run_at: datetime | None = None,
        priority: int = ...,
        group: str | None = ...,
        headers: dict[str, Any] | None = ...,
        project: str | None = ...,
        max_retries: int | None = ...,
        expires: _Seconds | None = ...,
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
    ) -> Self: ...
    def __class_getitem__(cls, kind: Any) -> GenericAlias: ...
    def _encoded(self, queue: Queue[Any], shape: Any, /) -> Next[Any]:
        """The same with its content as it is stored; `shape` is the type of the queue that the item is in."""

@final
class Node:
    """An item of a tree, with what is below it; see `Queue.tree`."""

    @property
    def id(self) -> int:
        """The id of the item."""
    @property
    def item(self) -> Item[Any] | None:
        """The item; None if it was removed."""
    @property
    def after(self) -> list[Node]:
        """The items it waits for or waited for, in the order given."""
    @property
    def children(self) -> list[Node]:
        """The items it has made and does not wait for."""
    @property
    def needed_by(self) -> list[int]:
        """The ids of items that wait for it and are not done, at most 100; only of the first node."""
    @property
    def repeated(self) -> bool:
        """Whether the item is in the tree twice, and what is below it is shown in the other place."""
    @property
    def left_out(self) -> int:
        """How many items directly below it are left out, because the tree is large."""

@final
class Item(Generic[_T_co]):
    """One item as it was when it was claimed or read. It cannot be changed.

    A claimed item is a context manager: leaving the block normally marks it done, an exception marks it failed and goes
    on its way, and the claim is renewed by a native thread for as long as the block runs. KeyboardInterrupt,
    GeneratorExit and the cancellation of the task that runs the block release the item uncounted; SystemExit counts as
    a lost claim does. When the claim has ended before, entering raises `StaleClaimError`; when it was lost meanwhile,
    leaving normally does. A block that called `mark_done` or another verb itself is left alone.

    An item can be pickled, for example for a `ProcessPoolExecutor`. The copy is data: it holds no claim and ends
    nothing, its `lost` and `stopping` are False, and verbs that need a claim raise `ValueError`. End the item that
    `claim` returned, in the process that claimed it.
    """

    def __class_getitem__(cls, kind: Any) -> GenericAlias: ...
    @property
    def id(self) -> int:
        """Its number, in order of arrival; never used twice."""
    @property
    def queue(self) -> str:
        """The name of its queue."""
    @property
    def home(self) -> str:
        """The name of the queue it was enqueued into; its key belongs there."""
    @property
    def stage(self) -> int:
        """How many stages it has behind it: 0 until a handler returns `Next`."""
    @property
    def parent(self) -> int | None:
        """The id of the item that made it with `item.enqueue`; None if none did."""
    @property
    def content(self) -> _T_co:
        """What was enqueued: str, bytes, or a JSON value. The raw text if the row cannot be read as its type.

        A claimed item of a queue that has a type has content of that type. One that was only read has too, if it fits;
        else its content is what is stored.
        """
    @property
    def project(self) -> str | None:
        """The project it belongs to, as given when it was enqueued."""
    @property
    def source_path(self) -> str | None:
        """Where its content is from, as given when it was enqueued."""
    @property
    def doc_date(self) -> str | None:
        """The date of its content, as given when it was enqueued."""
    @property
    def status(self) -> _Status:
        """pending, processing, done, failed, blocked or cancelled."""
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
    def priority(self) -> int:
        """Higher is claimed first."""
    @property
    def headers(self) -> dict[str, Any]:
        """What `enqueue` was given for the handler; an empty dict if nothing."""
    @property
    def group(self) -> str | None:
        """Its group, of which one item runs at a time; None if it has none."""
    @property
    def key(self) -> str | None:
        """Its key, which at most one unfinished item has; None if it has none."""
    @property
    def attempt(self) -> int:
        """How often it has been claimed. Never lowered."""
    @property
    def worker(self) -> str | None:
        """Who holds it, or finished it."""
    @property
    def max_retries(self) -> int | None:
        """Its own retry limit; None: the policy's or the queue's."""
    @property
    def enqueued_at(self) -> datetime:
        """1970 if another program wrote something that is not a time."""
    @property
    def started_at(self) -> datetime | None:
        """When it was claimed last; None if it never was."""
    @property
    def finished_at(self) -> datetime | None:
        """When it became done, failed or cancelled; None before."""
    @property
    def run_at(self) -> datetime | None:
        """When it is due; None: now."""
    @property
    def lease_until(self) -> datetime | None:
        """When the claim ends, as it stood when the item was read; renewals do not change it."""
    @property
    def expires_at(self) -> datetime | None:
        """When it is cancelled, whatever it does; None: never."""
    @property
    def after(self) -> list[Item[Any] | None]:
        """The items it waits for or waited for, in the order given, read from the file when asked for.

        Once the item runs, all of them have ended; with `if_failed="run"`, look at their `status`. None stands for one
        that was removed. A copy, such as an unpickled item, raises ValueError.
        """
    @property
    def lost(self) -> bool:
        """Whether the claim is gone, asked of the file at that moment. False for an item that was only read."""
    @property
    def cancelled(self) -> bool:
        """Whether the item was cancelled, for a claimed one asked of the file at that moment."""
    @property
    def stopping(self) -> bool:
        """Whether the loop that handles the item was asked to stop, by `stop` or a signal; False outside a loop.

        A handler that works in steps may end early then, or raise `RetryLater(0, count=False)`.
        """
    @property
    def progress(self) -> float | None:
        """How far its handler said it was in this attempt, from 0 to 1; then 1 once the item is done."""
    @property
    def progress_note(self) -> str | None:
        """What its handler said about its progress."""
    def enqueue(
        self,
        content: Any,
        *,
        queue: str | _NamedQueue | None = None,
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
        on_duplicate: Literal["return", "raise", "replace", "skip"] = "return",
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
        expires: _Seconds | None = None,
    ) -> None:
        """Enqueue an item with the end of this one: in the transaction that ends it as done or moved.

        If the attempt fails, or the item is released, put off or lost, nothing is enqueued. Content and options are
        checked at once, and raise as in `Queue.enqueue`. The key of this item is free by then if it is done: an item
        can enqueue its own successor. `content` may be a `NewItem`, with its own options.

        - `queue`: a name, or a queue of the same file; by default the queue of this item.
        - `priority`, `project`, the deadline and the headers `traceparent` and `tracestate` are those of this item
          unless given.
        - Other options are those of `Queue.enqueue`. With `on_duplicate="raise"`, a key in use fails the attempt.

        `max_pending` does not hold here. Raises `StaleClaimError` if the claim has ended or is known to be lost.
        """
    def step(
        self, name: str, function: Callable[..., _R], /, *arguments: Any, connection: Any = None, **named: Any
    ) -> _R:
        """Call a function once: return its result, or what an earlier attempt recorded under this name.

        A step is known by its name within the stage of the item. Each step, sleep and gather of an attempt needs its
        own name. Steps may be added, removed and reordered while items are under way: only new names run.

        The result is a JSON value, and every attempt gets it as JSON gives it back; a tuple becomes a list. What the
        function raises fails the attempt. If the process dies between the function and its record, the function is
        called again by the next attempt: give the other side `f"{item.id}-{name}"` to recognise that. With
        `connection`, of the kinds that `Queue.enqueue` takes, the step is recorded in your own transaction: what the
        function wrote there and the record exist once you commit, together or not at all.

        Raises ValueError for a name that is used twice, TypeError or ValueError for a result that JSON cannot carry,
        `PayloadTooLargeError` for one larger than `max_bytes`; the error names the step. Raises `StaleClaimError` if
        the claim is lost. Then nothing is recorded.
        """
    def _find_step(self, name: str, /) -> tuple[Any] | None:
        """Begin a step: what an earlier attempt recorded."""
    def _add_step(self, name: str, result: Any, connection: Any = None, /) -> Any:
        """Record the result of a step, and return it as every attempt gets it."""
    def sleep(self, name: str, seconds: _Seconds, /) -> None:
        """Sleep once, without holding a slot or counting an attempt.

        It leaves the handler with a `BaseException`, which must not be caught. The item is pending again, and due after
        that time. The handler is then called anew, and this call returns at once. A restart does not change the time.
        In `with item:` it ends the block. On a bare claim it raises ValueError.
        """
    def gather(
        self, name: str, items: Iterable[Any], /, *, if_failed: Literal["cancel", "run"] = "cancel"
    ) -> list[Item[Any] | Any]:
        """Enqueue items once, wait until all are done without holding a slot, and return them in the order given.

        - `items`: contents or `NewItem`s, of any queue of the file. They are children of this item, as those of
          `enqueue` are. None at all gives an empty list at once.
        - `if_failed`: "cancel" cancels this item if one of them fails for good, is cancelled or removed; `retry` of
          that one lets it wait again. With "run" this call returns then, too: look at `status` and `error`. One that
          was removed is None.

        It leaves the handler with a `BaseException`, which must not be caught. The item is `blocked` until then. The
        handler is called anew, and this call returns the items that the first call made, whatever it is given now.
        In `with item:` it ends the block. On a bare claim it raises ValueError.
        """
    def set_progress(self, fraction: float, note: str | None = None) -> bool:
        """Record how far the work on a claimed item is, for others to read. False if the claim is known to be lost.

        It is written at most every 200 ms, except 1.0; more frequent calls are written with the next renewal or the end
        of the claim. The handler never waits for it: while another writer holds the file, including a transaction that
        the handler itself has open, it is written a little later.
        """
    def as_dict(self) -> dict[str, Any]:
        """Return the item's attributes by name, from `id` to `progress_note`, without those that ask the file.

        Times are datetimes, and the content is what `content` is, so the dict need not be JSON:
        `json.dumps(item.as_dict(), default=str)` writes one for people to read.
        """
    def __reduce__(self) -> tuple[Any, ...]: ...
    def _fit(self, shape: Any, /) -> None:
        """Let the content be what `shape.decode` makes of it; raises what that raises."""
    @property
    def _known_lost(self) -> bool:
        """Whether this process knows that the claim is gone, without asking the file."""
    @property
    def _settled(self) -> bool:
        """Whether an end of the claim was recorded, or found to be too late."""
    @property
    def _promised(self) -> bool:
        """Whether an end was said on the caller's own connection, and nothing has come of it yet."""
    @property
    def _uncommitted(self) -> bool:
        """Whether such an end was not committed."""
    def transaction(self, connection: Any) -> AbstractContextManager[Item[_T_co]]:
        """End the claim in a transaction of your own connection: `with item.transaction(connection):`.

        `connection` is one of sqlite3, apsw, SQLAlchemy (including a session) or Django on the queue's file. The block
        begins a transaction (IMMEDIATE) and commits it. If you have begun one yourself, the block is a savepoint in it,
        and you commit. The receipt is presented before the block's first statement.

        If the block ends and nothing in it ended the item, the item is done. If it raises, its writes are undone and
        the failure is recorded, as by `with item:`; inside your own transaction that is recorded on your connection.

        Raises `StaleClaimError` if the claim was lost or the item was cancelled, and `ValueError` for a connection to
        another file.
        """
    def _block(self) -> Block:
        """The native half of `transaction`."""
    def check(self) -> None:
        """Raise `StaleClaimError` if the claim is gone or the item was cancelled; it says what became of it."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...
    def _leave(self, exception: BaseException | None, is_cancelled: bool, /) -> bool:
        """The same for a caller who knows whether the task that ran the block was cancelled."""

@disjoint_base
class Queue(Generic[_T]):
    """A named queue in an SQLite file; `membox_queue.Queue` adds what is written in Python."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        lease: _Seconds | None = None,
        max_retries: int | None = None,
        retry: Retry | None = None,
        durability: Literal["full", "normal"] = "full",
        max_bytes: int | None = None,
        busy_timeout: _Seconds = 30.0,
        worker: str | None = None,
        group_limit: int | None = None,
        max_pending: int | None = None,
        rate: Rate | None = None,
        group_rate: Rate | None = None,
        keep_for: _Seconds | None = None,
        keep_last: int | None = None,
        keep_failed_for: _Seconds | None = None,
        keep_content: bool | None = None,
    ) -> Self:
        """Open or create the queue.

        The file is put into WAL mode; its directory must exist. `":memory:"` is a private queue for tests. A file made
        by membox is extended in place.

        `durability="full"` means that what was acknowledged survives a power cut; `"normal"` may lose the last moments
        then. `busy_timeout` is how long a call waits for other writers. `worker` names the worker for people to read;
        by default host and process.

        `lease` (60 s) is how long a claim lasts without being renewed. `lease`, `durability`, `busy_timeout` and
        `worker` are this object's own.

        The other arguments are settings of the queue. The first who gives one stores it in the file, and it holds for
        every process. One that is left out, or None, has the stored value, else its default. One that differs from the
        stored value raises `SettingsConflictError`; `configure` changes or removes it.

        - `max_retries` (3): the retry limit of items without their own: that failure or lost lease is final.
        - `retry`: a policy of automatic retries; without one, failed items wait for `retry_failed`.
        - `max_bytes` (64 MiB): the limit of content and results, each.
        - `max_pending`: how many items may be pending.
        - `rate`, `group_rate`: how many items of the queue, or of each group, may be claimed in a period.
        - `group_limit` (1): how many items of one group may run at once.
        - `keep_for`, `keep_last`: how long, and how many, done items are kept; each limit holds by itself.
          `keep_failed_for`: how long failed and cancelled ones are kept. By default all are kept forever. Items are
          removed in small batches along with claims and finishes, never while their key is reserved. With
          `keep_last=0` that is as soon as they are done.
        - `keep_content` (True): False drops the content of an item when it is done; it reads as None from then on.

        Raises `NotADatabaseError`, `CorruptDatabaseError`, `ReadOnlyError` or `SchemaVersionError` without touching
        the file, and `MissingDirectoryError`, which is also a `FileNotFoundError`, when the directory is missing.
        """
    def __class_getitem__(cls, kind: Any) -> GenericAlias: ...
    def _set_shape(self, shape: Any, /) -> None:
        """Give the queue a type, once: `shape.encode` and `shape.decode` convert its content."""
    @property
    def _shape(self) -> Any:
        """What `_set_shape` was given; None if the queue has no type."""
    @property
    def path(self) -> Path | None:
        """The file's absolute path; None in memory."""
    @property
    def name(self) -> str:
        """Its name in the file."""
    @property
    def options(self) -> dict[str, Any]:
        """The options in effect for this object, by the names of the arguments; settings as they are stored."""
    @property
    def _given(self) -> dict[str, Any]:
        """The options it was opened with."""
    @property
    def _reopen_options(self) -> dict[str, Any]:
        """The options that open the same queue again; the file has its settings."""
    def configure(self, **settings: Unpack[QueueSettings]) -> None:
        """Store settings in the file, for all processes and for later; None removes one, and its default holds.

        The names are those of the settings in `Queue(…)`. Queues that are open, in any process, go by them from their
        next call on, including those that were opened with another value. A claim keeps the lease it was granted.
        `lease` is stored for those that are opened without one.
        """
    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
    @overload
    def enqueue(
        self,
        content: _T,
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
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
        expires: _Seconds | None = None,
        connection: Any = None,
        wait: _Seconds = 0.0,
        spawn: str | None = None,
    ) -> int: ...
    @overload
    def enqueue(
        self,
        content: _T,
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
        on_duplicate: Literal["skip"],
        after: Iterable[int | _WithId | NewItem[Any]] = (),
        if_failed: Literal["cancel", "run"] = "cancel",
        expires: _Seconds | None = None,
        connection: Any = None,
        wait: _Seconds = 0.0,
        spawn: str | None = None,
    ) -> int | None:
        """Add one item and return its id. When it returns, the item is on disk.

        `content` is str, bytes or a JSON value (None, bool, int of 64 bits, finite float, str, list, dict with str
        keys) and comes back equal and of the same type; a tuple comes back as a list. A value that JSON cannot carry
        exactly is refused with an error that names its place. `priority`: higher first. `delay` and `run_at` (an aware
        datetime; the past means now) delay the item. `headers` is a dict of JSON values for the handler.

        Items of one `group` run one at a time, in the order of their ids whatever their priority; an item that waits
        for its first delay does not hold its group up, one that waits for a retry does.

        At most one unfinished item has a `key`: if one exists, its id is returned and nothing is written. `key_ttl`
        keeps the key reserved for that long after the enqueue, even if the item is finished by then; `math.inf` means
        forever. An item that was cancelled while it runs gives its key to the next one that needs it.
        `key=BY_CONTENT` makes the key from the content; add `key_ttl=math.inf` to accept each content once, even after
        its item has ended. `on_duplicate="raise"` raises `DuplicateItemError` instead;
        `"replace"` gives the existing item the new content and options, all of them, if it is still pending, else
        raises; its id, its place in the order of arrival and what it has failed so far stay. `"skip"` adds nothing and
        returns None, so that the caller knows whether its item is new.

        With `after`, the item is `blocked` until those items of any queue of the file are done. It takes ids, items and
        `NewItem`s. New ones are enqueued before it, in the same transaction, as its children: they inherit its
        `priority`, `project`, `expires` and the headers `traceparent` and `tracestate`, unless they were given their
        own, and `max_pending` does not refuse them. If one of the items fails for good, is cancelled or removed, this
        one is cancelled, and its `error` says why; `retry` of that item lets this one wait again. With
        `if_failed="run"` it runs anyway. An id that does not exist is a ValueError. `Item.after` has the results.

        An item that has not ended `expires` seconds after its enqueue is cancelled, whatever it does. Its handler is
        told as by `cancel`, and its end is refused.

        With `connection`, one of sqlite3, apsw, SQLAlchemy (including a session) or Django on the same file, that
        library writes the item in your own transaction: it exists once you commit, and not if you roll back. If none is
        open, one is begun (IMMEDIATE) where the library would do so itself; a connection that commits each statement by
        itself raises `ValueError`. What is refused leaves nothing, and your transaction goes on. Errors are that
        library's exceptions. `wait` cannot be given then.

        `spawn` names a handler, and calls `spawn_worker` with it once the item is there; not together with
        `connection`.

        Raises `PayloadTooLargeError` above `max_bytes`, and `QueueFullError` above `max_pending`, after waiting up to
        `wait` for room.
        """
    def enqueue_many(
        self,
        items: Iterable[_T | NewItem[_T]],
        *,
        connection: Any = None,
        wait: _Seconds = 0.0,
        spawn: str | None = None,
    ) -> list[int | Any]:
        """Add all items or none, in one transaction; returns their ids. Elements are contents or `NewItem`s.

        `NewItem(…, queue=…)` goes into another queue of the file; the limits of each queue hold. If one of the queues
        is full, nothing is written.

        With `connection`, they are written in your own transaction, as by `enqueue`: if one of them is refused, none is
        written and your transaction goes on.
        """
    def claim(
        self,
        *,
        wait: _Seconds = 0.0,
        lease: _Seconds | None = None,
        group: str | None = None,
        worker: str | None = None,
    ) -> Item[_T] | None:
        """Claim the next item: highest priority first, then order of arrival. None if nothing is due.

        With `wait`, blocks up to that long for work, without the GIL; `math.inf` waits forever. `lease` and
        `worker`, the name of the worker, override the queue's for this claim. `group` claims from one group only.
        Expired claims of other workers are reclaimed first. A paused queue returns nothing. An item whose stored
        content does not match its checksum, or cannot be read, ends as failed, and the next one is claimed.
        """
    def _plan_claim(
        self,
        limit: int | None,
        kind: str,
        wait: _Seconds | None,
        lease: _Seconds | None,
        group: str | None,
        worker: str | None,
        /,
    ) -> ClaimPlan:
        """Read the arguments of `claim_many` or `claim_group`, once for all attempts."""
    def _claim(self, plan: ClaimPlan, left: float, /) -> list[Item[_T]]:
        """Claim what is there now; a plan with a wait waits `left` seconds for other writers at most."""
    def _ended(self, id: int, /) -> tuple[bool, Item[_T] | None] | None:
        """The item if it has ended, without the item if it was removed. Raises `ValueError` for an unknown id."""
    def _await_end(self) -> AwaitedEnd:
        """Show that a caller waits for an end."""
    def _watcher(self) -> Watcher:
        """A watcher over this queue's file; all queues of an open file share one."""
    @property
    def _database(self) -> int:
        """Tells open files apart, as long as a watcher over this one is kept."""
    @staticmethod
    def _seconds(what: str, value: _Seconds, /) -> float:
        """Read a duration as seconds. Raises `TypeError` or `ValueError` that names `what`."""
    def _find(self, id: int | None, key: str | None, /) -> int:
        """The id of the item to wait for. Raises `ValueError` when no item has the key."""
    def claim_many(
        self,
        limit: int,
        *,
        wait: _Seconds = 0.0,
        lease: _Seconds | None = None,
        group: str | None = None,
        worker: str | None = None,
    ) -> list[Item[_T]]:
        """Claim up to `limit` items in one transaction; an empty list if nothing is due."""
    def claim_group(
        self,
        group: str | None = None,
        *,
        limit: int | None = None,
        wait: _Seconds = 0.0,
        lease: _Seconds | None = None,
        worker: str | None = None,
    ) -> list[Item[_T]]:
        """Claim all pending items of one group, in order, each with its own receipt.

        The group must have no item in progress. It is the one that is named; by default whichever comes first, a group
        or a single item without a group, which is returned as a list of one. `limit` is the maximum number of items. If
        one of them is failed, released or lost, those after it are released uncounted.
        """
    def mark_done(self, item: Item[Any], result: Any = None, *, connection: Any = None) -> bool:
        """Record that a claimed item is done, with its result. False if the claim was lost: nothing changes.

        The result is a JSON value, or a value that typed content knows, such as a dataclass, a pydantic model or a
        datetime, which is stored as JSON. Raises `TypeError` or `ValueError` for one that cannot be stored, and
        `PayloadTooLargeError` above `max_bytes`; nothing changes then, either.

        With `connection`, the end is part of your own transaction, as the item of `enqueue` is; here a claim that was
        lost, or whose item was cancelled, raises `StaleClaimError`, so that your writes are undone. If you do not
        commit, a loop fails the item, and never counts it as done. So do `mark_failed` and `release`.

        Raises `ValueError` for an item that was only read, or claimed from another queue.
        """
    def mark_done_many(self, items: Iterable[Item[Any]]) -> int:
        """Mark claimed items done in one transaction; returns how many took effect."""
    def _release_many(self, items: Iterable[Item[Any]], /) -> int:
        """Release claimed items uncounted in one transaction; returns how many took effect."""
    def _fail_batch(self, items: list[Item[Any]], exception: BaseException, /) -> int:
        """Fail the first item and release those behind it, in one transaction; returns how many took effect."""
    def mark_failed(
        self,
        item: Item[Any],
        error: str | BaseException,
        retry_in: _Seconds | None = None,
        give_up: bool = False,
        *,
        connection: Any = None,
    ) -> bool:
        """Record a failure and count it. False when the claim was lost: nothing changes.

        A string is stored as it is, an exception as `Name: text`; text above 8 KiB is cut, with a mark. `retry_in`
        retries it after that many seconds, whatever the policy, unless this failure is the last allowed. `give_up`
        makes the failure final, even with `retry_in`. `RetryLater` and `GiveUp` mean the same here as in a handler.
        """
    def release(self, item: Item[Any], delay: _Seconds = 0.0, *, connection: Any = None) -> bool:
        """Return a claimed item to pending without counting an attempt. False if the claim was lost."""
    def _release_abandoned(self, item: Item[Any], /) -> None:
        """Release an item that an iteration leaves behind, unless it was ended on the user's own connection."""
    def extend(self, item: Item[Any], seconds: _Seconds) -> bool:
        """Set the lease to end this many seconds from now. False if the claim was lost.

        An expired lease can be extended as long as the item was not reclaimed. While a native thread renews
        the claim (in `drain` and `with item:`), the lease is only made longer, never shorter.
        """
    def retry_failed(self, max_retries: int | None = None, *, delay: _Seconds = 0.0) -> int:
        """Return failed items below their retry limit to pending, in small batches. Return how many.

        `max_retries` replaces every item's retry limit for this call; `delay` delays the items. Items that were given
        up stay failed, and so do items whose key is in use again; of several with one key only the latest is retried.
        """
    @overload
    def retry(
        self,
        id: int,
        *,
        key: None = None,
        status: None = None,
        delay: _Seconds = 0.0,
        tree: bool = False,
        connection: Any = None,
    ) -> bool: ...
    @overload
    def retry(
        self,
        id: None = None,
        *,
        key: str,
        status: None = None,
        delay: _Seconds = 0.0,
        tree: bool = False,
        connection: Any = None,
    ) -> bool: ...
    @overload
    def retry(
        self,
        id: Iterable[int],
        *,
        key: None = None,
        status: None = None,
        delay: _Seconds = 0.0,
        tree: Literal[False] = False,
        connection: Any = None,
    ) -> int: ...
    @overload
    def retry(
        self,
        id: None = None,
        *,
        key: None = None,
        status: Literal["failed", "cancelled"],
        delay: _Seconds = 0.0,
        tree: Literal[False] = False,
        connection: Any = None,
    ) -> int:
        """Return failed or cancelled items to pending, at their original position, with their retry count reset.

        - `id`: one item, or several ids.
        - `key`: the newest item with this key.
        - `status`: all items of this status, including those at their retry limit or given up.
        - `delay`: seconds until the items are due.
        - `tree`: of one item, first all failed or cancelled items that it waits for.
        - `connection`: change them in your own transaction, as `enqueue` does; there all at once.

        An item that still waits for others becomes blocked instead. Items that were cancelled because of this one wait
        again, to any depth; what a person cancelled does not. A deadline that has passed no longer holds.

        Of one item, return whether it was brought back: False if it is neither failed nor cancelled, if its key is in
        use again, or if an item it waits for has failed, was cancelled or removed (`tree=True` brings those back). Of
        several, return how many; they are changed in small batches, and of several with one key only the latest is
        retried.
        """
    def retry_all(self, *, delay: _Seconds = 0.0) -> int:
        """An alias of `retry(status="failed")`."""
    @overload
    def replay(self, id: int, *, key: None = None, status: None = None, delay: _Seconds = 0.0) -> int | None: ...
    @overload
    def replay(self, id: None = None, *, key: str, status: None = None, delay: _Seconds = 0.0) -> int | None: ...
    @overload
    def replay(self, id: Iterable[int], *, key: None = None, status: None = None, delay: _Seconds = 0.0) -> int: ...
    @overload
    def replay(
        self,
        id: None = None,
        *,
        key: None = None,
        status: Literal["done", "failed", "cancelled"],
        delay: _Seconds = 0.0,
    ) -> int:
        """Enqueue copies of items, whatever their status, without their keys.

        The arguments are those of `retry`. Of one item, return the id of the copy: None if there is no such item, or
        its content was dropped. Of several, return how many were copied; they are copied in small batches.
        """
    def run_now(self, id: int | None = None, *, key: str | None = None, connection: Any = None) -> bool:
        """Make a delayed item due now. False if it does not wait for a time.

        With `connection`, in your own transaction, as `enqueue` does.
        """
    def run_later(
        self,
        id: int | None = None,
        delay: _Seconds | None = None,
        *,
        key: str | None = None,
        run_at: datetime | None = None,
        connection: Any = None,
    ) -> bool:
        """Reschedule a pending item. False if there is no such pending item.

        The past means now. The item keeps its place in the order. With `connection`, in your own transaction, as
        `enqueue` does.
        """
    def answer(
        self,
        id: int | None = None,
        result: Any = None,
        *,
        error: str | BaseException | None = None,
        key: str | None = None,
        key_ttl: _Seconds | None = None,
        connection: Any = None,
    ) -> bool:
        """End an item without a claim, for a person, a webhook or another program. Return whether it took effect.

        - `id`, `key`: the item, or the newest with this key.
        - `result`: a JSON value; the item is done.
        - `error`: the item fails for good with that error, which replaces an earlier one.
        - `key_ttl`: if no item with the key waits for an answer, keep this one for that long. An item that is enqueued
          with the key finds it: its enqueue returns the id of the answer, which is done. The first answer counts.
        - `connection`: answer in your own transaction, as in `enqueue_many`; your commit frees those that wait.

        A pending, delayed, blocked, running or failed item can be answered. False if there is no such item, or if it is
        done or cancelled. The claim of a worker that holds it is lost; `item.check()` says that it was answered.
        """
    def cancel(
        self, id: int | None = None, *, key: str | None = None, tree: bool = False, connection: Any = None
    ) -> bool:
        """Cancel an unfinished item. False if it is finished or already cancelled.

        With `tree`, cancel also what it has made and what it waits for, to any depth, but not what another unfinished
        item needs. Return whether any of them was cancelled. Items that were cancelled because of another stay so.

        An item in progress becomes `cancelled` when its worker reports, whatever the result, or when its lease ends.
        Until then the handler can check `item.cancelled`; its receipt is no longer valid. With `connection`, in your
        own transaction, as `enqueue` does.
        """
    def purge(self, status: _Status = "failed") -> int:
        """Remove all items of one status and their keys, reserved or not, in small batches. Return how many.

        Items that others wait for, or whose result others need, stay. So do items to which a foreign key of your tables
        refers, and a warning in the log names one of them.
        """
    def prune(self, older_than: _Seconds, *, status: Literal["done", "failed", "cancelled"] = "done") -> int:
        """Remove items of a finished status that ended longer ago than that, in small batches. Return how many.

        Items whose key is still reserved and items that others need stay. So do those to which a foreign key of your
        tables refers; a warning in the log names one of the latter.
        """
    def compact(self) -> None:
        """Rewrite the file to free the space of removed rows, and truncate its WAL.

        Other writers wait while the file is rewritten. A long-running reader keeps the WAL from being truncated and the
        file from shrinking until it finishes. `compact` waits for it for at most `busy_timeout`, while others write,
        and returns; the WAL is truncated later.

        A file that this library made frees most of that space by itself, in small steps, as rows are removed.
        """
    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole file as it is now, including the application's tables; others may write meanwhile.

        The copy is a file of its own that opens as a queue, with the mode of the original. It has its name only once it
        is whole and on disk; until then it is `<path>.<random>.partial`. Of two backups to one name one succeeds.

        Raises `ExistingFileError`, which is also a `FileExistsError`, when there is a file of that name, or a `-wal`,
        `-shm` or `-journal` that an earlier one left. Raises `MissingDirectoryError`, which is also a
        `FileNotFoundError`, when its directory is missing.
        """
    def check(self, *, thorough: bool = True) -> dict[str, Any]:
        """Check the file and the queue. A thorough check reads the whole file.

        - `faults`: a list of lines, empty if the file is sound: what SQLite's integrity check found (only in a thorough
          check), and tables, indexes, views and triggers of the queue that are missing or altered.
        - `mended`: those that were missing or altered when the file was opened, and were repaired then.
        - `stuck`: ids of items held by dead workers or beyond their lease; the next claim reclaims them.
        - `unknown_status`: ids of items with an unknown status, which no claim and no count includes (only in a
          thorough check). The table refuses such rows; older files may have some.
        - `kept_by_foreign_keys`: finished items to which rows of your tables refer, as a dict of table and ids;
          retention, `prune` and `purge` skip them.
        - `writer`: who holds the write lock at this moment, in words, or None.
        - `own_locks`: whether another copy of SQLite in this process can use the file safely.
        - `file_bytes`, `free_bytes` (space of removed rows), `wal_bytes`, `schema_version`.

        At most a hundred ids of a kind are listed.
        """
    def tend(self) -> None:
        """Run maintenance now: retention, freeing of space, and a checkpoint. Otherwise loops and claims run it."""
    def schedule(
        self,
        name: str,
        content: _T,
        *,
        cron: str | None = None,
        every: _Seconds | None = None,
        tz: str | ZoneInfo = "UTC",
        project: str | None = None,
        source_path: str | os.PathLike[str] | None = None,
        doc_date: str | date | None = None,
        priority: int = 0,
        max_retries: int | None = None,
        headers: dict[str, Any] | None = None,
        group: str | None = None,
        key: str | ByContent | None = None,
        connection: Any = None,
    ) -> Schedule:
        """Enqueue an item repeatedly; a schedule of that name is replaced.

        `cron` is a pattern (minute hour day month weekday; optionally seconds in front, or a name such as `@daily`)
        read in the time zone `tz`. At a daylight-saving change a fixed time such as `30 2 * * *` ticks once; patterns
        with lists or steps tick whenever the wall clock matches. `every` ticks that often from now on. Each tick is
        enqueued once, by the first claim after it (`claim`, `drain` and `work`); missed ticks collapse into one. With a
        `key`, nothing is enqueued while the last item is unfinished. A schedule whose timing stays the same keeps its
        next tick, so it is safe to call this at every start. Ticks ignore `max_pending`. With `connection`, the
        schedule is written in your own transaction, as items are by `enqueue_many`.

        Raises `ValueError` for a pattern or a time zone that cannot be read, or a pattern that never matches.
        """
    def schedules(self) -> list[Schedule]:
        """All schedules of this queue, by name."""
    def unschedule(self, name: str) -> bool:
        """Remove a schedule. False if there was none of that name."""
    def wait(self, id: int | None = None, timeout: _Seconds | None = None, *, key: str | None = None) -> Item[_T] | Any:
        """Wait until an item is done, failed or cancelled, and return it. With `key`, the item that has it now.

        An item whose worker died is reclaimed meanwhile, as a claim would; on its last attempt it ends as failed.
        Return None if the item was removed. With `keep_for=0` or `keep_last=0` an item is removed as it ends, unless a
        caller waits for an end: then it stays a little longer. Raises `TimeoutError`, and `ValueError` for an id that
        no item of this queue ever had.
        """
    def lock(self, name: str, *, ttl: _Seconds = 30.0, wait: _Seconds = 0.0) -> Lock:
        """Return a named lock of the file, with the rules of the worker lease: `with queue.lock("nightly"): …`."""
    def stats(self) -> _Stats:
        """The queue at a glance.

        `counts`, `delayed` (how many of the pending wait for a time: a delay or a retry), `stuck` (ids of up to 100
        items held by dead workers or beyond their lease: the next claim, `wait` or `tend` reclaims them),
        `oldest_pending_age` in seconds (of items that wait for a worker, not for a time), `next_due_at` (a datetime:
        the next delayed item, retry, tick of a schedule, or slot of a rate that something waits for), `groups` with
        unfinished items, `paused`, `worker_is_alive`, `workers` (those of `workers()` that serve this queue or hold
        items of it), and `worker`: the `pid`, `hostname` and `heartbeat` (a datetime) of the holder of the live worker
        lease, or None.
        """
    def workers(self) -> list[WorkerInfo]:
        """List who works on the file: loops of all queues, and processes that hold items or a worker lease.

        `drain`, `work`, `Worker` and `process` are listed from their beginning to their end, in every process. One that
        was killed is not listed any more from that moment on. If it holds items, its process is listed as not `alive`
        until the next claim reclaims them. At most 1,000 loops, and 1,000 items of each queue, are shown. On a file
        system without OFD locks, loops are not listed: only items and worker leases tell.
        """
    def _next_due(self, *, ticks: bool) -> datetime | None:
        """What `stats` says of it; without ticks, of what waits already. `membox_queue.testing` uses this."""
    def queues(self) -> dict[str, dict[str, int]]:
        """The counts of every queue of the file that ever had an item, by its name."""
    def pause(self) -> bool:
        """Stop all claims from this queue, in every process, until `resume`. False if it was already paused."""
    def resume(self) -> bool:
        """End a pause. False if there was none."""
    @property
    def paused(self) -> bool:
        """Whether claims are stopped by `pause`."""
    def history(self, id: int | None = None, *, key: str | None = None) -> list[Attempt]:
        """How an item's attempts ended, oldest first; the latest twenty."""
    def group_counts(self) -> dict[str, dict[str, int]]:
        """Unfinished items of each group: `{"coder": {"pending": 2, "processing": 1}}`."""
    def delete(
        self, id: int | None = None, *, key: str | None = None, tree: bool = False, connection: Any = None
    ) -> bool:
        """Remove an item, whatever its status. A receipt for it is no longer valid.

        With `tree`, remove also what it has made and what it waits for, to any depth, all or nothing. With
        `connection`, in your own transaction, as `enqueue` does; not together with `tree`.

        Raises `NeededItemError` if another item that is not done waits for it or needs its result.
        Raises `StorageError` with the name of the table if a foreign key of your tables refers to it.
        """
    def get(self, id: int | None = None, *, key: str | None = None) -> Item[_T] | None:
        """One item that is in this queue or began here: by its id, or the newest with this key. None if there is none.

        `wait`, `answer`, `cancel`, `retry`, `replay`, `delete`, `run_now`, `run_later`, `history` and `tree` find their
        item in the same two ways. Giving both, or neither, raises `TypeError`.
        """
    def items(
        self,
        status: _Status | None = None,
        *,
        project: str | None = None,
        group: str | None = None,
        limit: int = 50,
        after: int | None = None,
        newest_first: bool = False,
        home: bool = False,
    ) -> list[Item[_T]]:
        """Return a page of items in the order of their ids; `after` is the last id of the previous page.

        With `home`, they are the items that were enqueued here, wherever they are now.
        """
    def tree(self, id: int | None = None, *, key: str | None = None, limit: int = 1000) -> Node | None:
        """Return an item with what it waits for and what it has made, to any depth. None if there is no such item.

        At most `limit` items are read, the nearest first, and 500 levels.
        """
    def _uncovered(self) -> int:
        """Return how many items have not ended that are here or began here; `coverage_note` calls this."""
    def counts(self) -> dict[str, int]:
        """Return how many items of this queue have each status, including zeros."""
    def pending(self) -> int:
        """Return how many items are pending or processing."""
    def failures(self, limit: int = 5) -> list[Item[_T]]:
        """The latest failed items, newest first."""
    def running(self, limit: int = 50) -> list[Item[_T]]:
        """Return the items in progress, the longest-running first."""
    def acquire_worker_lease(self, ttl: _Seconds = 60.0) -> bool:
        """Take the right to be the one worker of this queue. False while it is held, including by this object."""
    def refresh_worker_lease(self) -> bool:
        """Renew this object's lease. False if it has none or it was taken over."""
    def release_worker_lease(self) -> bool:
        """Give this object's lease back. False if it has none or it was taken over."""
    def worker_is_alive(self) -> bool:
        """Return whether a worker will look for new items, so that none need be started.

        That is so while a process holds the worker lease (`drain`), and while another loop serves this queue (`work`,
        `Worker`, `drain(exclusive=False)`) that was not asked to stop and has no `limit`. Such a loop looks once more
        before it ends: an item that was enqueued before this call is seen. A process that was killed does not count,
        from that moment on. One that is stopped by SIGSTOP counts, but its worker lease runs out.
        """
    def _announce_worker(self, seconds: float, /) -> str | None:
        """Announce a worker that is starting; None while one is alive or starting. `spawn_worker` uses this."""
    def _confirm_worker(self, announcement: str, seconds: float, /) -> bool:
        """Confirm that the announced worker, this process, has started. It counts as starting for `seconds` at most.

        False if it came too late: another was announced since, or none is expected.
        """
    def _withdraw_worker(self, announcement: str, /) -> bool:
        """Withdraw an announced worker. False if it has started, or another was announced since."""
    def _share_leases_with_membox(self) -> bool:
        """Store worker leases in membox's `meta`, where its programs look for them. Return whether that is possible."""
    def _take_over_worker_lease(self, ttl: float, /) -> bool:
        """Take the worker lease as membox does, unless another process holds it live.

        Taking a lease over, including its own, returns all items in progress to pending. `membox_queue.membox` uses
        this and the three below.
        """
    def _refresh_process_lease(self, ttl: float, /) -> bool:
        """Renew the heartbeat, unless the lease is another process's. Return whether it was renewed."""
    def _release_process_lease(self) -> bool:
        """Release the lease, unless it is another process's. Return whether there was one."""
    def _is_worker_younger_than(self, ttl: float, /) -> bool:
        """Return whether a worker's heartbeat is younger than `ttl` seconds, and its process not known to be dead."""
    def _begin_loop(
        self,
        others: list[Queue[Any]],
        *,
        slots: int = 1,
        exclusive: bool = False,
        stays: bool = False,
        linger: _Seconds = 0.0,
        limit: int | None = None,
        whole_groups: bool = False,
        max_runtime: _Seconds | None = None,
        ttl: _Seconds | None = None,
        takes_over: bool = False,
    ) -> WorkerLoop | None:
        """Begin a loop; None when it is to be exclusive and another live worker holds the lease."""
    def close(self) -> None:
        """End this object's use of the file, and release its worker lease and locks.

        What was claimed stays claimed; its receipts work on another object of the same queue. Closing twice is closing
        once.
        """

@final
class Lock:
    """A named lock; entering its `with` block raises `QueueBusyError` while another holder has it.

    A native thread renews it until it is released, at the latest when the queue is closed. It does not nest: its
    holder cannot take it again. One that was taken over while the block ran, because the process stood still for
    longer than `ttl`, makes leaving the block normally raise `StaleClaimError`. A lock whose process was killed is free
    at once, and a forked child does not hold its parent's.
    """

    @property
    def name(self) -> str:
        """Its name in the file."""
    @property
    def held(self) -> bool:
        """Whether this object took it and has not given it back."""
    @property
    def lost(self) -> bool:
        """Whether another holder has taken it over, as far as the native thread knew at its last renewal."""
    def acquire(self) -> bool:
        """Take the lock, waiting up to `wait`. False while another holder is alive."""
    def release(self) -> bool:
        """Give it back. False if it was not held, or was taken over."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None, /
    ) -> bool: ...

@final
class AwaitedEnd:
    """Shows, while it exists, that a caller waits for the end of an item."""

@final
class LoopStep:
    """What a slot of a loop has done and does next."""

    @property
    def ended(self) -> list[str]:
        """How the items that the slot held have ended."""
    @property
    def next(self) -> Literal["work", "wait", "over"]:
        """What the slot does next."""
    @property
    def queue(self) -> int:
        """The index of the queue of the items."""
    @property
    def items(self) -> list[Item[Any]]:
        """The items to handle."""

@final
class WorkerLoop:
    """The native half of a loop: its slots hold items, which a native thread renews, and perhaps the worker lease.

    A slot holds the items that its handler works on.
    """

    def next(self, slot: int, /) -> LoopStep:
        """Claim for a slot that holds no items."""
    def check_result(self, slot: int, result: Any, /) -> None:
        """Raise what `done` raises for a result that cannot be stored."""
    def done(self, slot: int, results: list[Any], /) -> LoopStep:
        """Record the slot's items as done and claim the next, in one transaction."""
    def failed(self, slot: int, items: list[Item[Any]], exception: BaseException | str, /) -> LoopStep:
        """Record why the first open item failed, give the later ones back, and claim the next."""
    def wait(self, slot: int, seconds: float, /) -> bool:
        """Sleep a little while there is nothing to do. Return whether another step may find something."""
    def look_at_promises(self, slot: int, /) -> bool:
        """Look whether ends that the handler said on its own connection were committed. Return whether one was not."""
    def withdrawn(self) -> list[tuple[int, int]]:
        """The slots whose items were all cancelled or lost: the id and attempt of the first item of each.

        The file is read only if it has changed since the last call, or other items are held.
        """
    def stop(self) -> None:
        """Claim no more."""
    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop."""
    @property
    def blocked_by_this_process(self) -> bool:
        """Whether another connection of this very process keeps the file locked."""
    def tend(self) -> None:
        """See `Queue.tend`."""
    def abandon(self) -> None:
        """Leave everything as it is, as a process that dies does: renew nothing any more, and give nothing back."""
    def close(self) -> int:
        """Release the remaining items, uncounted, and the lease. Return how many items were released."""
