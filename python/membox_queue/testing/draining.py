"""DrainNow: handles everything in the queues of a test, moving the fake clock on to what falls due."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from membox_queue.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from membox_queue import DrainReport, Item, Queue

JUMPS = 10_000
"""How often `drain_now` moves the clock before it reports that the wait never ends."""


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
