"""The pytest plugin: a temporary queue, a clock that moves when told, failures on request, and assertions.

pytest finds it by its entry point, so nothing need be imported; `docs/testing.md` is the guide. The native module is
loaded by the first fixture that needs it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest

from membox_queue import errors
from membox_queue.errors import SimulatedCrash

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from membox_queue import DrainReport, Item, Queue

    Verb = Literal["enqueue", "claim", "finish"]

# A test that fails, is skipped or ends everything inside a handler: that is no failure of an item.
errors.STOPS += (pytest.fail.Exception, pytest.skip.Exception, pytest.exit.Exception)

__all__ = [
    "DrainNow",
    "FakeClock",
    "Fault",
    "Faults",
    "MakeQueue",
    "SimulatedCrash",
    "assert_done",
    "assert_empty",
    "assert_enqueued",
    "assert_failed",
]

EPOCH = datetime.fromtimestamp(0, UTC)
UNFINISHED = ("pending", "processing", "blocked")
ANYTHING: Any = object()
"""What stands for any content."""
LISTED = 20
"""A failed assertion lists so many items, the newest."""
WIDTH = 60
"""It shows so much of a content or an error."""
JUMPS = 10_000
"""How often `drain_now` moves the clock before it takes what waits for endless."""


class FakeClock:
    """The clock of all queues of this process, stopped; it moves only when told, and whoever waits is woken then.

    `with FakeClock() as clock:` does what the fixture does.
    """

    current: FakeClock | None = None

    def __init__(self) -> None:
        from membox_queue import _native

        self._native = _native
        self._ms = _native.clock()
        self._before = FakeClock.current

    def now(self) -> datetime:
        """What the clock says, in UTC."""
        return EPOCH + timedelta(milliseconds=self._ms)

    def advance(self, seconds: float | timedelta) -> None:
        """Move the clock on; a negative number moves it back."""
        number = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
        self._move(self._ms + round(number * 1000))

    def set(self, moment: datetime) -> None:
        """Move the clock to an aware datetime."""
        if moment.tzinfo is None:
            raise ValueError("set takes a datetime with a time zone, such as datetime(2026, 1, 1, tzinfo=UTC)")
        self._move((moment - EPOCH) // timedelta(milliseconds=1))

    def _move(self, ms: int) -> None:
        self._ms = ms
        self._native.set_clock(ms)

    def __enter__(self) -> Self:
        self._move(self._ms)
        FakeClock.current = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        FakeClock.current = self._before
        self._native.set_clock(None if self._before is None else self._before._ms)

    def __repr__(self) -> str:
        return f"<FakeClock at {self.now().isoformat(sep=' ')}>"


class Fault:
    """Something that will go wrong: once from now on, or at every call inside its `with` block."""

    def __init__(self, kind: str, at: Verb | None, times: int | None) -> None:
        from membox_queue import _native

        self._native = _native
        self._arm = functools.partial(_native.arm_fault, kind, at)  # type: ignore[arg-type]
        self._times = times
        self._number = self._arm(1 if times is None else times)

    def disarm(self) -> bool:
        """Let it go wrong no more. False if it has gone off as often as it was to."""
        return self._native.disarm_fault(self._number)

    def __enter__(self) -> Self:
        if self._times is None and self.disarm():
            self._number = self._arm(None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self.disarm()


class Faults:
    """What can go wrong in this process, on request.

    Each may be told `at` which verbs: "enqueue", "claim" or "finish" (`mark_done`, `mark_failed`, `release` and the end
    of a handler), None for any of them. It goes off once, `times` times, or inside `with` at every call.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def busy(self, at: Verb | None = "claim", *, times: int | None = None) -> Fault:
        """Others hold the file: `QueueBusyError`, and nothing is changed. Loops try again."""
        return self._add("busy", at, times)

    def disk_full(self, at: Verb | None = None, *, times: int | None = None) -> Fault:
        """No space is left: `DiskFullError`, and nothing is changed. Loops try again."""
        return self._add("disk_full", at, times)

    def crash_before(self, at: Verb | None = "finish", *, times: int | None = None) -> Fault:
        """The process dies before the change is committed: `SimulatedCrash`, which nothing catches as an Exception.

        Whatever was claimed stays claimed until its lease ends, as after a real death.
        """
        return self._add("crash_before", at, times)

    def crash_after(self, at: Verb | None = "finish", *, times: int | None = None) -> Fault:
        """The process dies when the change is committed, before the caller learns of it: `SimulatedCrash`."""
        return self._add("crash_after", at, times)

    def disarm(self) -> None:
        """Let nothing go wrong any more."""
        for fault in self._faults:
            fault.disarm()

    def _add(self, kind: str, at: Verb | None, times: int | None) -> Fault:
        fault = Fault(kind, at, times)
        self._faults.append(fault)
        return fault


class MakeQueue(Protocol):
    """What `make_queue` is."""

    def __call__(self, name: str = "ingest", *, path: str | os.PathLike[str] | None = None, **options: Any) -> Queue:
        """Open a queue in the test's own temporary file, or in `path`; it is closed when the test ends."""


class Rounds:
    """The queues to drain next, over and over, until nothing is left; the clock moves on in between."""

    def __init__(self, queues: tuple[Queue, ...], to_the_end: bool, until: datetime | None) -> None:
        from membox_queue import DrainReport

        if not queues:
            raise ValueError("there is no queue to drain: use membox_queue or make_queue, or name one")
        if until is not None and (FakeClock.current is None or not to_the_end or until.tzinfo is None):
            raise ValueError("until is an aware datetime that the clock of fake_clock is moved to")
        self.queues = queues
        self.to_the_end = to_the_end
        self.until = until
        self.report = DrainReport()
        self.error: BaseException | None = None
        self.has_handled = False
        self.is_over = False
        self.options: dict[str, Any] = {}
        self.stop: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[Queue]:
        for _ in range(JUMPS):
            self.has_handled = True
            while self.has_handled and not self.is_over:
                self.has_handled = False
                for queue in self.queues:
                    if not self.is_over:
                        yield queue
            if self.is_over or not self.jump():
                return
        raise AssertionError(
            f"the clock was moved on {JUMPS} times and something waits for a time still; drain with to_the_end=False"
        )

    def add(self, report: DrainReport) -> None:
        """Count in what one drain did."""
        mine, its = dataclasses.astuple(self.report), dataclasses.astuple(report)
        self.report = type(report)(*(a or b if isinstance(a, bool) else a + b for a, b in zip(mine, its, strict=True)))
        handled = report.done + report.failed + report.postponed + report.released + report.lost + report.cancelled
        self.has_handled |= handled > 0
        self.is_over |= report.stopped
        if self.options.get("limit") is not None:
            self.options["limit"] -= handled
            self.is_over |= self.options["limit"] <= 0

    def jump(self) -> bool:
        """Move the clock on to what falls due next. False if nothing waits for a time.

        Ticks never end, so they alone keep nobody: they come on the way to something else.
        """
        clock = FakeClock.current
        if clock is None or not self.to_the_end:
            return False
        last = self.until or self.due(clock, ticks=False)
        due = self.due(clock, ticks=True)
        if last is None or due is None or due > last:
            if self.until is not None and self.until > clock.now():
                clock.set(self.until)
            return False
        clock.set(due)
        return True

    def due(self, clock: FakeClock, *, ticks: bool) -> datetime | None:
        """When the next thing falls due, later than now; of a queue that is paused, nothing does."""
        moments = [queue._next_due(ticks=ticks) for queue in self.queues if not queue.paused]
        return min((moment for moment in moments if moment is not None and moment > clock.now()), default=None)

    def plan(self, raise_errors: bool, options: dict[str, Any]) -> dict[str, Any]:
        """The options of each drain; a limit is one for all."""
        from membox_queue import DrainReport, GiveUp, RetryLater

        told = options.get("on_error")

        def on_error(error: BaseException, item: Item | None, phase: str) -> None:
            if told is not None:
                told(error, item, phase)
            if raise_errors and phase == "handler" and not isinstance(error, RetryLater | GiveUp):
                self.error = self.error or error
                self.stop()

        if options.pop("retry_failed", False):
            self.add(DrainReport(retried=sum(queue.retry_failed() for queue in self.queues)))
        self.options = {"exclusive": False, **options, "on_error": on_error}
        return self.options

    def outcome(self) -> DrainReport:
        """What came of it all."""
        if self.error is not None:
            raise self.error
        return self.report


class DrainNow:
    """Handle everything there is in the queues of the test, and say what came of it."""

    def __init__(self, made: list[Queue]) -> None:
        self._made = made

    def __call__(
        self,
        handler: Callable[[Any], Any],
        *queues: Queue,
        to_the_end: bool = True,
        until: datetime | None = None,
        raise_errors: bool = False,
        **options: Any,
    ) -> DrainReport:
        """Drain these queues, by default all that the fixtures of this test have opened.

        With `fake_clock` in use, the clock is moved on to whatever waits for a time (delayed items, retries, slots of a
        rate) until nothing waits any more; schedules tick on the way. `until` moves it to that moment instead, through
        all that comes before, ticks too; `to_the_end=False` leaves it alone. Without it, only what is due now is
        handled. With `raise_errors`, the first exception of the handler is recorded as ever and then raised. Other
        options are those of `Queue.drain`; no worker lease is taken.
        """
        __tracebackhide__ = True
        rounds = Rounds(queues or tuple(self._made), to_the_end, until)
        plan = rounds.plan(raise_errors, options)
        for queue in rounds:
            rounds.stop = queue.stop
            rounds.add(queue.drain(handler, **plan))
        return rounds.outcome()

    async def asynchronously(
        self,
        handler: Callable[[Any], Any],
        *queues: Queue,
        to_the_end: bool = True,
        until: datetime | None = None,
        raise_errors: bool = False,
        **options: Any,
    ) -> DrainReport:
        """Do the same in the running event loop, with a handler that is awaited or a plain one."""
        __tracebackhide__ = True
        from membox_queue import AsyncQueue

        rounds = Rounds(queues or tuple(self._made), to_the_end, until)
        plan = rounds.plan(raise_errors, options)
        for queue in rounds:
            assert queue.path is not None, "a queue in memory cannot be opened a second time"
            async with AsyncQueue(queue.path, queue.name, type=queue.type, **queue._given) as same:
                rounds.stop = same.stop
                rounds.add(await same.drain(handler, **plan))
        return rounds.outcome()


def assert_enqueued(queue: Queue, content: Any = ANYTHING, *, count: int | None = None, **fields: Any) -> list[Item]:
    """Assert that an item waits or is being worked on, and return those that fit.

    `fields` are compared with what the item says: `project="p"`, `priority=5`, `group="coder"`, … `count` is exactly
    how many; None is one or more.
    """
    __tracebackhide__ = True
    return expect(queue, "waiting", UNFINISHED, content, count, fields)


def assert_done(queue: Queue, content: Any = ANYTHING, *, count: int | None = None, **fields: Any) -> list[Item]:
    """Assert that an item is done, and return those that fit; `result=` is one of the fields."""
    __tracebackhide__ = True
    return expect(queue, "done", ("done",), content, count, fields)


def assert_failed(
    queue: Queue,
    content: Any = ANYTHING,
    *,
    error: str | re.Pattern[str] | None = None,
    count: int | None = None,
    **fields: Any,
) -> list[Item]:
    """Assert that an item came to rest as failed, and return those that fit.

    `error` is a part of its failure text, or a compiled pattern that is found in it.
    """
    __tracebackhide__ = True
    if error is not None:
        fields["error"] = Containing(error)
    return expect(queue, "failed", ("failed",), content, count, fields)


def assert_empty(queue: Queue) -> None:
    """Assert that nothing waits and nothing is being worked on; what is finished does not count."""
    __tracebackhide__ = True
    left = [item for item in everything(queue) if item.status in UNFINISHED]
    if left:
        raise AssertionError(f"queue {queue.name!r} is not empty:\n{listing(left, {})}")


class Containing:
    """Equal to every text that contains it."""

    def __init__(self, part: str | re.Pattern[str]) -> None:
        self.pattern = re.compile(re.escape(part)) if isinstance(part, str) else part
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.pattern.search(other) is not None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"…{self.part}…" if isinstance(self.part, str) else repr(self.part)


def expect(
    queue: Queue, state: str, statuses: tuple[str, ...], content: Any, count: int | None, fields: dict[str, Any]
) -> list[Item]:
    """Find the items that fit, or say what is there instead."""
    __tracebackhide__ = True
    wanted = fields if content is ANYTHING else {"content": content, **fields}
    items = everything(queue)
    check_names(queue, fields)
    found = [item for item in items if item.status in statuses and fits(item, wanted)]
    if (count is None and found) or len(found) == count:
        return found
    described = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
    asked = f"{'an item' if count is None else f'exactly {count}'} {state} in queue {queue.name!r}"
    asked += f" with {described}" if described else ""
    there = f"It holds\n{listing(items, fields)}" if items else "It holds no items at all."
    raise AssertionError(f"expected {asked}, found {len(found) or 'none'}. {there}")


def fits(item: Item, wanted: dict[str, Any]) -> bool:
    """Whether an item says what is wanted; the wanted value compares, so that it may be more than a plain one."""
    return all(bool(value == getattr(item, name)) for name, value in wanted.items())


def check_names(queue: Queue, fields: dict[str, Any]) -> None:
    """Refuse a field that no item has, which no item could fit."""
    from membox_queue import Item

    known = [name for name in vars(Item) if not name.startswith("_") and not callable(getattr(Item, name))]
    for name in fields:
        if name not in known:
            raise TypeError(f"items have no field {name!r}; they have {', '.join(sorted(known))}")


def everything(queue: Queue) -> list[Item]:
    """All items of a queue, page by page."""
    items: list[Item] = []
    while page := queue.items(limit=1000, after=items[-1].id if items else None):
        items += page
    return items


def listing(items: list[Item], fields: dict[str, Any]) -> str:
    """What a failed assertion shows of the items: a line each, the fields that were asked for, their last error."""
    lines = []
    for item in items[-LISTED:]:
        asked = [f"{name}={shortened(repr(getattr(item, name)))}" for name in fields if name != "error"]
        parts = [f"#{item.id:<3} {item.status:<10} {shortened(repr(item.content))}", *asked]
        if item.run_at is not None and item.status == "pending":
            parts.append(f"due {item.run_at:%Y-%m-%d %H:%M:%S}")
        if item.error:
            parts.append(f"error: {shortened(item.error)}")
        lines.append("  " + "  ".join(parts))
    earlier = len(items) - len(lines)
    return "\n".join([f"  … {earlier} earlier"] * bool(earlier) + lines)


def shortened(text: str) -> str:
    """One line, not too long."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


@pytest.fixture
def fake_clock() -> Generator[FakeClock]:
    """The clock of all queues of this process, stopped: `advance(seconds)`, `set(datetime)`, `now()`."""
    with FakeClock() as clock:
        yield clock


@pytest.fixture
def membox_faults() -> Generator[Faults]:
    """Failures on request: `busy`, `disk_full`, `crash_before`, `crash_after`."""
    faults = Faults()
    yield faults
    faults.disarm()


@pytest.fixture(name="_membox_queues_made")
def queues_made() -> Generator[list[Queue]]:
    """The queues that this test has open."""
    made: list[Queue] = []
    yield made
    with contextlib.ExitStack() as closing:
        for queue in made:
            closing.callback(queue.close)


@pytest.fixture
def make_queue(_membox_queues_made: list[Queue], tmp_path: Path) -> MakeQueue:
    """Open queues: `make_queue("name", **options)`, all in one temporary file unless `path` says otherwise."""

    def make(name: str = "ingest", *, path: str | os.PathLike[str] | None = None, **options: Any) -> Queue:
        from membox_queue import Queue

        # No test waits for a power cut.
        options.setdefault("durability", "normal")
        queue = Queue(tmp_path / "membox_queue.db" if path is None else path, name, **options)
        _membox_queues_made.append(queue)
        return queue

    return make


@pytest.fixture
def membox_queue(make_queue: MakeQueue) -> Queue:
    """A queue in a temporary file."""
    return make_queue()


@pytest.fixture
def drain_now(_membox_queues_made: list[Queue]) -> DrainNow:
    """Handle everything there is in the queues of this test: `drain_now(handler)` gives a `DrainReport`."""
    return DrainNow(_membox_queues_made)


@pytest.fixture(name="assert_enqueued")
def assert_enqueued_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_enqueued`."""
    return assert_enqueued


@pytest.fixture(name="assert_done")
def assert_done_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_done`."""
    return assert_done


@pytest.fixture(name="assert_failed")
def assert_failed_fixture() -> Callable[..., list[Item]]:
    """See `membox_queue.testing.assert_failed`."""
    return assert_failed


@pytest.fixture(name="assert_empty")
def assert_empty_fixture() -> Callable[..., None]:
    """See `membox_queue.testing.assert_empty`."""
    return assert_empty
