"""DrainNow: handles everything in the queues of a test, moving the fake clock forward to what becomes due."""

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
    """The queues to drain next, repeatedly, until nothing is left; the clock moves forward in between."""

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
        """Add the counts of one drain."""
        mine, its = dataclasses.astuple(self.report), dataclasses.astuple(report)
        self.report = type(report)(*(a or b if isinstance(a, bool) else a + b for a, b in zip(mine, its, strict=True)))
        handled = report.done + report.failed + report.postponed + report.released + report.lost + report.cancelled
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
        moments = [queue._next_due(ticks=ticks) for queue in self.queues if not queue.paused]
        return min((moment for moment in moments if moment is not None and moment > clock.now()), default=None)

    def plan(self, raise_errors: bool, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of each drain; `limit` is shared by all of them."""
        from membox_queue import DrainReport, GiveUp, RetryLater

        given = options.get("on_error")

        def on_error(error: BaseException, item: Item | None, phase: str) -> None:
            if given is not None:
                given(error, item, phase)
            if raise_errors and phase == "handler" and not isinstance(error, RetryLater | GiveUp):
                self.error = self.error or error
                self.stop()

        if options.pop("retry_failed", False):
            self.add(DrainReport(retried=sum(queue.retry_failed() for queue in self.queues)))
        self.options = {"exclusive": False, **options, "on_error": on_error}
        return self.options

    def outcome(self) -> DrainReport:
        """Return the sum of all reports, or raise the first error of a handler."""
        if self.error is not None:
            raise self.error
        return self.report


class DrainNow:
    """Handle everything in the queues of the test, and return what was done."""

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

        - `fake_clock` in use: the clock moves forward to everything that waits for a time (delayed items, retries,
          slots of a rate) until nothing waits; schedules tick on the way. Without it, only what is due now is handled.
        - `until`: move the clock to that moment instead, through all that comes before, including ticks.
        - `to_the_end=False`: do not move the clock.
        - `raise_errors`: record the first exception of the handler as usual, and then raise it.
        - Other options are those of `Queue.drain`; no worker lease is taken.
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
        """Do the same in the running event loop, with a coroutine function or a plain handler."""
        __tracebackhide__ = True
        from membox_queue.aio.twin import twin_of

        rounds = Rounds(queues or tuple(self._made), to_the_end, until)
        plan = rounds.plan(raise_errors, options)
        for queue in rounds:
            assert queue.path is not None, "a queue in memory cannot be opened a second time"
            async with twin_of(queue) as same:
                rounds.stop = same.stop
                rounds.add(await same.drain(handler, **plan))
        return rounds.outcome()
