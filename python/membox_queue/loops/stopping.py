"""How a loop is stopped: signals, the grace period, and what happens when it is over."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from membox_queue.errors import LoopStop, QueueError
from membox_queue.loops.log import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from membox_queue import _native

logger = logging.getLogger("membox_queue")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHORT = 0.3
"""Seconds after a signal before the user is told that the loop is stopping."""


class GraceOver(LoopStop):
    """Raised in a handler of the main thread that runs on after the grace period; its item has been released.

    `loop` is the one whose grace period is over: a loop inside a handler of another lets it through.
    """

    def __init__(self, loop: Stopping) -> None:
        self.loop = loop


class SecondSignal(LoopStop, SystemExit):
    """Raised in the main thread by a second SIGTERM: the program exits at once, and no item is charged with it."""


class Stopping:
    """Stops one loop: at `stop` or a signal, and by force after the grace period or at a second signal."""

    def __init__(
        self,
        native: _native.WorkerLoop,
        release_all: Callable[[], None],
        grace: float,
        report_stopping: Callable[[float], None],
    ) -> None:
        self.native = native
        self.release_all = release_all
        self.grace = grace
        self.report_stopping = report_stopping
        self.ended = threading.Event()
        self.signals = 0
        self.is_over = False
        self.has_ended = False
        self.process = os.getpid()
        self.previous: dict[int, Any] = {}
        self.listened: list[int] = []
        self.lock = threading.Lock()
        self.timer: threading.Thread | None = None
        self.outer: Stopping | None = None

    @property
    def is_inherited(self) -> bool:
        """Whether this is a child that a handler forked: the loop is its parent's."""
        return self.process != os.getpid()

    def stop(self) -> None:
        """Claim no more; running handlers have the grace period to finish."""
        if self.is_inherited:
            return
        self.native.stop()
        if self.timer is None:
            self.timer = threading.Thread(target=self.wait_for_end, name="membox-queue-grace", daemon=True)
            # An interpreter that exits may start no more threads; then there is no grace period.
            with contextlib.suppress(RuntimeError):
                self.timer.start()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals while the loop runs, if this is the main thread; then restore the previous handlers."""
        previous = self.previous
        try:
            if threading.current_thread() is threading.main_thread():
                for number in SIGNALS:
                    # Ignored on purpose (nohup), or set by something that is not Python: not ours to change.
                    if signal.getsignal(number) not in (signal.SIG_IGN, None):
                        previous[number] = signal.signal(number, self.on_signal)
                        # A loop inside a handler of another: what ends this one ends that one too.
                        outer = getattr(previous[number], "__self__", None)
                        self.outer = outer if isinstance(outer, Stopping) and not outer.is_inherited else None
                self.listened = list(previous)
            yield
        finally:
            # From here on `wait_for_end` sends no signal; one that is on its way is swallowed by `on_signal`.
            self.has_ended = True
            with self.lock:
                self.listened = []
            self.ended.set()
            for heard, handler in previous.items():
                signal.signal(heard, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal stops the loop, the second ends it at once."""
        if self.is_inherited:
            signal.signal(number, self.previous[number])
            signal.raise_signal(number)
            return
        over = self.outermost_over()
        if over is not None:
            if over.has_ended:
                return
            raise GraceOver(over)
        if self.count_signal() == 1:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SecondSignal(128 + number)

    def count_signal(self) -> int:
        """Count a signal, here and in the loops around this one. Return the highest count."""
        self.signals += 1
        if self.signals == 1:
            self.stop()
        return max(self.signals, self.outer.count_signal() if self.outer is not None else 0)

    def outermost_over(self) -> Stopping | None:
        """Of this loop and those in whose handlers it runs, return the outermost whose grace period is over."""
        outer = self.outer.outermost_over() if self.outer is not None else None
        return outer or (self if self.is_over else None)

    def wait_for_end(self) -> None:
        """When the loop is not done within the grace period, release its items."""
        grace = min(self.grace, threading.TIMEOUT_MAX)
        if self.ended.wait(min(SHORT, grace)):
            return
        self.report_stopping(grace)
        if self.ended.wait(max(0.0, grace - SHORT)):
            return
        try:
            self.release_all()
        except QueueError:
            words = "membox_queue could not release everything; the leases will expire"
            logger.warning(words, exc_info=True, extra=fields("not_released"))
        self.is_over = True
        with self.lock:
            if self.listened:
                # Only a signal reaches a handler that sleeps or loops in the main thread.
                signal.pthread_kill(threading.main_thread().ident or 0, self.listened[0])
        self.ended.set()
