"""FakeClock: the clock of all queues of this process, which moves only when told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

EPOCH = datetime.fromtimestamp(0, UTC)


class FakeClock:
    """The clock of all queues of this process, stopped. It moves only when told, and then wakes all waits.

    `with FakeClock() as clock:` does what the fixture does.
    """

    current: FakeClock | None = None

    def __init__(self) -> None:
        from membox_queue import _native

        self._native = _native
        self._ms = _native.clock()
        self._before = FakeClock.current

    def now(self) -> datetime:
        """Return the time of the clock, in UTC."""
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
