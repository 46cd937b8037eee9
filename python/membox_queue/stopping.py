"""How a loop is asked to end: signals, a grace, and what happens when it is over."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from membox_queue.errors import LoopStop, QueueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from membox_queue import _native

logger = logging.getLogger("membox_queue")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHORT = 0.3
"""Seconds for which nobody wonders whether the signal was heard."""


class GraceOver(LoopStop):
    """Raised in a handler of the main thread that ran on after the grace was over; its item has been given back.

    `loop` is the one whose grace it was: a loop inside a handler of another lets it through.
    """

    def __init__(self, loop: Stopping) -> None:
        self.loop = loop


class SecondSignal(LoopStop, SystemExit):
    """Raised in the main thread by a second SIGTERM: the program exits at once, and no item is to blame."""


class Stopping:
    """The end of one loop: asked for by `stop` or a signal, forced when the grace is over or by a second signal."""

    def __init__(
        self, crew: _native.Crew, give_back: Callable[[], None], grace: float, tell: Callable[[float], None]
    ) -> None:
        self.crew = crew
        self.tell = tell
        self.give_back = give_back
        self.grace = grace
        self.left = threading.Event()
        self.signals = 0
        self.is_over = False
        self.has_left = False
        self.process = os.getpid()
        self.before: dict[int, Any] = {}
        self.listened: list[int] = []
        self.lock = threading.Lock()
        self.timer: threading.Thread | None = None
        self.outer: Stopping | None = None

    @property
    def is_inherited(self) -> bool:
        """Whether this is a child that a handler forked: the loop is its parent's."""
        return self.process != os.getpid()

    def stop(self) -> None:
        """Claim no more; what is still running has the grace to end."""
        if self.is_inherited:
            return
        self.crew.stop()
        if self.timer is None:
            self.timer = threading.Thread(target=self.wait_for_end, name="membox-queue-grace", daemon=True)
            # An interpreter that exits may start no more threads; what runs then ends when it ends.
            with contextlib.suppress(RuntimeError):
                self.timer.start()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handle signals while the loop runs, if this is the main thread; afterwards everything is as it was."""
        before = self.before
        try:
            if threading.current_thread() is threading.main_thread():
                for number in SIGNALS:
                    # Ignored on purpose (nohup), or set by something that is not Python: not ours to change.
                    if signal.getsignal(number) not in (signal.SIG_IGN, None):
                        before[number] = signal.signal(number, self.on_signal)
                        # A loop inside a handler of another: what ends this one ends that one too.
                        outer = getattr(before[number], "__self__", None)
                        self.outer = outer if isinstance(outer, Stopping) and not outer.is_inherited else None
                self.listened = list(before)
            yield
        finally:
            # From here on nobody sends a signal to end the handler; one that is on its way is taken by `on_signal`.
            self.has_left = True
            with self.lock:
                self.listened = []
            self.left.set()
            for heard, handler in before.items():
                signal.signal(heard, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal asks the loop to end, the second leaves at once."""
        if self.is_inherited:
            signal.signal(number, self.before[number])
            signal.raise_signal(number)
            return
        over = self.outermost_over()
        if over is not None:
            if over.has_left:
                return
            raise GraceOver(over)
        if self.heard() == 1:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SecondSignal(128 + number)

    def heard(self) -> int:
        """Count a signal, here and in the loops around this one; the most that one of them has heard."""
        self.signals += 1
        if self.signals == 1:
            self.stop()
        return max(self.signals, self.outer.heard() if self.outer is not None else 0)

    def outermost_over(self) -> Stopping | None:
        """Of this loop and those in whose handlers it runs, the outermost whose grace is over."""
        outer = self.outer.outermost_over() if self.outer is not None else None
        return outer or (self if self.is_over else None)

    def wait_for_end(self) -> None:
        """When the loop is not done within the grace, give back what it holds."""
        grace = min(self.grace, threading.TIMEOUT_MAX)
        if self.left.wait(min(SHORT, grace)):
            return
        self.tell(grace)
        if self.left.wait(max(0.0, grace - SHORT)):
            return
        try:
            self.give_back()
        except QueueError:
            logger.warning("membox_queue could not give everything back; leases will", exc_info=True)
        self.is_over = True
        with self.lock:
            if self.listened:
                # Only a signal reaches a handler that sleeps or loops in the main thread.
                signal.pthread_kill(threading.main_thread().ident or 0, self.listened[0])
        self.left.set()
