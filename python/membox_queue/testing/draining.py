"""DrainNow: handles everything in the queues of a test, moving the fake clock forward to what becomes due."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from membox_queue.loops.report import DrainReport
from membox_queue.options import DrainOptions
from membox_queue.testing.assertions import UNFINISHED, described, items_with
from membox_queue.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from membox_queue import Item, Queue, Worker

    Handlers = Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] | Worker | None
    Served = list[tuple[Queue, Callable[[Any], Any]]]

ENDINGS = ("done", "moved", "failed", "postponed", "blocked", "released", "lost", "cancelled")
"""The counts of a report that add up to the items it has claimed."""
JUMPS = 10_000
"""How often `drain_now` moves the clock before it reports that the wait never ends."""
SHOWN = 5
"""How many of the items that are left the report shows in its `repr`."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False, eq=False)
class DrainedNow(DrainReport):
    """What `drain_now` did: a `DrainReport`, equal to one with the same counts, that knows what is left.

    - `left`: the unfinished items that are in the drained queues or began there: delayed, asleep, blocked, paused,
      held by another worker, or moved to a queue that was not drained.
    """

    left: tuple[Item, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DrainReport) and counts_of(self) == counts_of(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = "; ".join(f"{item.queue} {described(item)}" for item in self.left[:SHOWN])
        more = f"; and {len(self.left) - SHOWN} more" if len(self.left) > SHOWN else ""
        return f"{DrainReport(**counts_of(self))!r}" + (f", left: {shown}{more}" if self.left else "")


def counts_of(report: DrainReport) -> dict[str, Any]:
    """Return the counts and flags of a report by name."""
    return {field.name: getattr(report, field.name) for field in dataclasses.fields(DrainReport)}


class Rounds:
    """The queues to drain next, repeatedly, until nothing is left; the clock moves forward in between."""

    def __init__(self, served: Served, to_the_end: bool, until: datetime | None) -> None:
        if until is not None and (FakeClock.current is None or not to_the_end or until.tzinfo is None):
            raise ValueError("until is an aware datetime that the clock of fake_clock is moved to")
        self.served = served
        self.to_the_end = to_the_end
        self.until = until
        self.report = DrainReport()
        self.error: BaseException | None = None
        self.has_handled = False
        self.is_over = False
        self.options: dict[str, Any] = {}
        self.stop: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[tuple[Queue, Callable[[Any], Any]]]:
        for _ in range(JUMPS):
            self.has_handled = True
            while self.has_handled and not self.is_over:
                self.has_handled = False
                for queue, handler in self.served:
                    if not self.is_over:
                        yield queue, handler
            if self.is_over or not self.jump():
                return
        raise AssertionError(
            f"the clock was moved on {JUMPS} times and something waits for a time still; drain with to_the_end=False"
        )

    def add(self, report: DrainReport) -> None:
        """Add the counts of one drain."""
        mine, its = counts_of(self.report), counts_of(report)
        self.report = DrainReport(
            **{name: a or its[name] if isinstance(a, bool) else a + its[name] for name, a in mine.items()}
        )
        handled = sum(its[ending] for ending in ENDINGS)
        self.has_handled |= handled > 0
        self.is_over |= report.stopped
        if self.options.get("limit") is not None:
            self.options["limit"] -= handled
            self.is_over |= self.options["limit"] <= 0

    def jump(self) -> bool:
        """Move the clock forward to what becomes due next. Return False if nothing waits for a time.

        The ticks of a schedule never end, so `drain_now` does not wait for them alone.
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
        """Return when the next thing becomes due, later than now. Paused queues do not count."""
        moments = [queue._next_due(ticks=ticks) for queue, _ in self.served if not queue.paused]
        return min((moment for moment in moments if moment is not None and moment > clock.now()), default=None)

    def plan(self, raise_errors: bool, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of each drain; `limit` is shared by all of them."""
        from membox_queue import GiveUp, RetryLater

        given = options.get("on_error")

        def on_error(error: BaseException, item: Item | None, phase: str) -> None:
            if given is not None:
                given(error, item, phase)
            if raise_errors and phase == "handler" and not isinstance(error, RetryLater | GiveUp):
                self.error = self.error or error
                self.stop()

        if options.pop("retry_failed", False):
            self.add(DrainReport(retried=sum(queue.retry_failed() for queue, _ in self.served)))
        self.options = {"exclusive": False, **options, "on_error": on_error}
        return self.options

    def outcome(self) -> DrainedNow:
        """Return the sum of all reports with what is left, or raise the first error of a handler."""
        if self.error is not None:
            raise self.error
        found = {
            item.id: item
            for queue, _ in self.served
            for home in (False, True)
            for status in UNFINISHED
            for item in items_with(queue, status=status, home=home)
        }
        return DrainedNow(**counts_of(self.report), left=tuple(found[id] for id in sorted(found)))


class DrainNow:
    """Handle everything in the queues of the test, and return what was done and what is left."""

    def __init__(self, made: list[Queue]) -> None:
        self._made = made

    def __call__(
        self,
        handler: Handlers = None,
        *queues: Queue,
        to_the_end: bool = True,
        until: datetime | None = None,
        raise_errors: bool = False,
        **options: Any,
    ) -> DrainedNow:
        """Drain queues in turn until nothing more can be handled, whichever queue it moves to or frees items in.

        - `handler`: a callable for all queues; or a dict of handlers by the names of their queues, which are opened
          in the test's file if no fixture has; or a `Worker`, for its queues with its handlers and options. None:
          the functions that are registered with the queues.
        - `queues`: by default all that the fixtures of this test have opened. A `Worker` has its own.
        - `fake_clock` in use: the clock moves forward to everything that waits for a time (delayed and sleeping items,
          retries, slots of a rate) until nothing waits; schedules tick on the way. Without it, only what is due now is
          handled.
        - `until`: move the clock to that moment instead, through all that comes before, including ticks.
        - `to_the_end=False`: do not move the clock.
        - `raise_errors`: record the first exception of the handler as usual, and then raise it.
        - Other options are those of `Queue.drain`; no worker lease is taken.
        """
        __tracebackhide__ = True
        with contextlib.ExitStack() as opened:
            rounds = Rounds(self._served(handler, queues, opened), to_the_end, until)
            plan = rounds.plan(raise_errors, {**options_of(handler), **options})
            for queue, its_handler in rounds:
                rounds.stop = queue.stop
                rounds.add(queue.drain(its_handler, **plan))
            return rounds.outcome()

    async def asynchronously(
        self,
        handler: Handlers = None,
        *queues: Queue,
        to_the_end: bool = True,
        until: datetime | None = None,
        raise_errors: bool = False,
        **options: Any,
    ) -> DrainedNow:
        """Do the same in the running event loop; handlers may be coroutine functions or plain ones."""
        __tracebackhide__ = True
        from membox_queue.aio.twin import twin_of

        with contextlib.ExitStack() as opened:
            rounds = Rounds(self._served(handler, queues, opened), to_the_end, until)
            plan = rounds.plan(raise_errors, {**options_of(handler), **options})
            for queue, its_handler in rounds:
                assert queue.path is not None, "a queue in memory cannot be opened a second time"
                async with twin_of(queue) as same:
                    rounds.stop = same.stop
                    rounds.add(await same.drain(its_handler, **plan))
            return rounds.outcome()

    def _served(self, handler: Handlers, queues: tuple[Queue, ...], opened: contextlib.ExitStack) -> Served:
        """Return the queues to drain, each with its handler. Those that are opened for it are closed by `opened`."""
        from membox_queue import Queue, Worker

        if isinstance(handler, Worker):
            if queues:
                raise ValueError("a worker has its own queues: name none beside it")
            return [
                (opened.enter_context(Queue(handler.path, name, **handler.options[name])), its_handler)
                for name, its_handler in handler.handlers.items()
            ]
        there = queues or tuple(self._made)
        if not there:
            raise ValueError("there is no queue to drain: use membox_queue or make_queue, or name one")
        if isinstance(handler, Mapping):
            known = {queue.name: queue for queue in reversed(there)}
            unserved = [queue.name for queue in queues if queue.name not in handler]
            if not handler or unserved:
                raise ValueError(f"there is no handler for {', '.join(unserved) or 'any queue'}")
            if not set(handler) <= set(known) and there[0].path is None:
                raise ValueError("a queue in memory lives in one object: open each with make_queue")
            path: Any = there[0].path
            return [
                (known.get(name) or opened.enter_context(Queue(path, name, durability="normal")), its_handler)
                for name, its_handler in handler.items()
            ]
        if handler is None:
            from membox_queue.queue import handlers_of

            registered: Served = [(each.queue, each) for queue in there for each in handlers_of(queue)]
            if not registered:
                raise TypeError("these queues have no handler; give one, or register it with @queue.handler")
            return registered
        return [(queue, handler) for queue in there]


def options_of(handler: Handlers) -> dict[str, Any]:
    """Return the options of a `Worker` as those of a drain; no other handler brings any."""
    from membox_queue import Worker

    if not isinstance(handler, Worker):
        return {}
    names = [*DrainOptions.__optional_keys__, "batch"]
    return {name: getattr(handler.plan, name) for name in names}
