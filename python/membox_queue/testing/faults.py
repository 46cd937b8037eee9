"""Faults: failures of the store and deaths of the process, on request."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    Verb = Literal["enqueue", "claim", "finish"]


class Fault:
    """A failure that will happen: at the next call, or at every call inside its `with` block."""

    def __init__(self, kind: str, at: Verb | None, times: int | None) -> None:
        from membox_queue import _native

        self._native = _native
        self._arm = functools.partial(_native.arm_fault, kind, at)  # type: ignore[arg-type]
        self._times = times
        self._number = self._arm(1 if times is None else times)

    def disarm(self) -> bool:
        """Cancel the failure. Return False if it has already happened as often as it was to."""
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
    """Failures of this process, on request.

    `at` chooses the verbs: "enqueue", "claim" or "finish" (`mark_done`, `mark_failed`, `release` and the end of a
    handler); None means any of them. A failure happens once, `times` times, or inside `with` at every call.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def busy(self, at: Verb | None = "claim", *, times: int | None = None) -> Fault:
        """Another writer holds the file: `QueueBusyError`, and nothing is changed. Loops try again."""
        return self._add("busy", at, times)

    def disk_full(self, at: Verb | None = None, *, times: int | None = None) -> Fault:
        """No space is left: `DiskFullError`, and nothing is changed. Loops try again."""
        return self._add("disk_full", at, times)

    def crash_before(self, at: Verb | None = "finish", *, times: int | None = None) -> Fault:
        """The process dies before the change is committed: `SimulatedCrash`, which nothing catches as an Exception.

        Claimed items stay claimed until their leases expire, as after a real death.
        """
        return self._add("crash_before", at, times)

    def crash_after(self, at: Verb | None = "finish", *, times: int | None = None) -> Fault:
        """The process dies when the change is committed, before the caller learns of it: `SimulatedCrash`."""
        return self._add("crash_after", at, times)

    def disarm(self) -> None:
        """Cancel all failures."""
        for fault in self._faults:
            fault.disarm()

    def _add(self, kind: str, at: Verb | None, times: int | None) -> Fault:
        fault = Fault(kind, at, times)
        self._faults.append(fault)
        return fault
