"""Several worker processes: a parent that starts and stops them, replaces the dead, and sums their reports.

The standard input of a child is a pipe from the parent: when the parent closes it, or is gone, the child stops.
Passing a signal on would not do: systemd sends SIGTERM to all processes of a service, and a second one ends a loop at
once.
"""

import contextlib
import dataclasses
import json
import logging
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from membox_queue.cli.reloading import AGAIN
from membox_queue.cli.usage import FAILED_ITEMS, INTERRUPTED
from membox_queue.loops.loop import is_any_stopped
from membox_queue.loops.report import DrainReport

logger = logging.getLogger("membox_queue")

ORDERLY = frozenset((0, FAILED_ITEMS, INTERRUPTED))
"""The exit codes of a child that came to its end."""
FIRST_PAUSE = 1.0
"""Seconds before a child that died is replaced; twice as long each time."""
LONGEST_PAUSE = 30.0
SIGNAL_DELAY = 0.2
"""Seconds in which a signal to all processes reaches a child after its parent."""
STEADY = 60.0
"""A child that lived this long is replaced after the first pause again."""


@dataclass(eq=False)
class Child:
    """One worker process."""

    process: subprocess.Popen[bytes]
    report: Path
    place: int
    started: float

    @property
    def has_begun(self) -> bool:
        """Whether it has imported its handlers."""
        return self.report.exists()


class Parent:
    """Starts the children and waits for their ends."""

    def __init__(self, command: list[str], count: int, *, retry_failed: bool, watch: bool, folder: Path) -> None:
        self.command = command
        self.count = count
        self.retry_failed = retry_failed
        self.watch = watch
        self.folder = folder
        self.children: list[Child] = []
        self.ended: queue.SimpleQueue[Child] = queue.SimpleQueue()
        self.waiting: dict[int, float] = {}
        self.pauses = [FIRST_PAUSE] * count
        self.reports: list[DrainReport] = []
        self.number = 0
        self.signals = 0
        self.is_stopping = False
        self.failure: int | None = None

    def run(self) -> tuple[DrainReport, int]:
        """Run until all children have ended. Return the sum of their reports, and the exit code."""
        with self.listening():
            for place in range(self.count):
                # One of them is enough to bring failed items back; a second would bring back what failed since.
                self.start(place, ["--retry-failed"] * (self.retry_failed and place == 0))
            while self.children or self.waiting:
                with contextlib.suppress(queue.Empty):
                    self.note_end(self.ended.get(timeout=self.seconds_to_next_start()))
                self.start_waiting()
        report = summed(self.reports, stopped=self.signals > 0)
        if self.failure is not None:
            return report, self.failure
        if self.signals > 1 or (self.signals and not self.watch):
            return report, INTERRUPTED
        return report, FAILED_ITEMS if report.failed else 0

    def start(self, place: int, more: list[str]) -> None:
        """Start one child."""
        self.number += 1
        report = self.folder / f"{self.number}.json"
        # A group of its own: Ctrl-C at a terminal reaches the parent alone, which passes it on.
        group = {"process_group": 0} if os.name == "posix" else {}
        command = [*self.command, *more, "--report", str(report)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, **group)  # type: ignore[call-overload]
        child = Child(process, report, place, time.monotonic())
        self.children.append(child)
        threading.Thread(target=self.wait_for, args=(child,), daemon=True).start()
        if self.is_stopping:
            ask_to_stop(child)

    def wait_for(self, child: Child) -> None:
        """In a thread: wait for the end of a child."""
        child.process.wait()
        self.ended.put(child)

    def note_end(self, child: Child) -> None:
        """Count what a child did; replace it if it should go on."""
        self.children.remove(child)
        ask_to_stop(child)
        if (report := read_report(child.report)) is not None:
            self.reports.append(report)
        code, pid = child.process.returncode, child.process.pid
        if self.is_stopping:
            return
        if code == AGAIN:
            self.start(child.place, [])
        elif not child.has_begun and code > 0 and self.number <= self.count:
            # It cannot import its handlers, and has said so; neither can the others.
            self.failure = code
            self.stop()
        elif self.watch:
            self.replace_later(child, f"worker process {pid} {how_it_ended(code)}")
        elif code not in ORDERLY:
            self.failure = 1
            logger.error("worker process %d %s", pid, how_it_ended(code), extra={"event": "process_died", "child": pid})

    def replace_later(self, child: Child, words: str) -> None:
        """Start another child after a pause, which grows while they die soon."""
        if time.monotonic() - child.started >= STEADY:
            self.pauses[child.place] = FIRST_PAUSE
        pause = self.pauses[child.place]
        self.pauses[child.place] = min(2 * pause, LONGEST_PAUSE)
        self.waiting[child.place] = time.monotonic() + pause
        fields = {"event": "process_died", "child": child.process.pid, "seconds": pause}
        logger.warning("%s; another one is started in %g s", words, pause, extra=fields)

    def seconds_to_next_start(self) -> float | None:
        """Return how long to wait for the end of a child; None: until one ends."""
        return max(0.0, min(self.waiting.values()) - time.monotonic()) if self.waiting else None

    def start_waiting(self) -> None:
        """Start the children whose pause is over."""
        for place, due in tuple(self.waiting.items()):
            if self.is_stopping:
                del self.waiting[place]
            elif due <= time.monotonic():
                del self.waiting[place]
                self.start(place, [])

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Pass signals on while the children run."""
        before = {number: signal.signal(number, self.on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal stops the children, the second ends them at once."""
        self.signals += 1
        self.stop()
        if self.signals > 1:
            for child in tuple(self.children):
                child.process.terminate()

    def stop(self) -> None:
        """Ask all children to stop, and start no more."""
        self.is_stopping = True
        for child in tuple(self.children):
            ask_to_stop(child)


def ask_to_stop(child: Child) -> None:
    """Close the pipe to a child."""
    if child.process.stdin is not None:
        child.process.stdin.close()


def run(command: list[str], count: int, retry_failed: bool, watch: bool) -> tuple[DrainReport, int]:
    """Run the command in several processes. Return the sum of their reports, and the exit code."""
    with tempfile.TemporaryDirectory(prefix="membox-queue-") as folder:
        return Parent(command, count, retry_failed=retry_failed, watch=watch, folder=Path(folder)).run()


def how_it_ended(code: int) -> str:
    """Return how a process ended, in words."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def summed(reports: list[DrainReport], *, stopped: bool) -> DrainReport:
    """Return the sum of several reports."""
    counts = [field.name for field in dataclasses.fields(DrainReport) if field.name not in ("refused", "stopped")]
    sums: dict[str, Any] = {name: sum(getattr(report, name) for report in reports) for name in counts}
    return DrainReport(**sums, stopped=stopped)


def read_report(path: Path) -> DrainReport | None:
    """Return what a child wrote; None if it died before."""
    try:
        written = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return DrainReport(**json.loads(written)) if written else None


def tell_begun(path: Path) -> None:
    """In a child: tell the parent that the handlers are imported."""
    path.touch()


def write_report(path: Path, report: DrainReport) -> None:
    """In a child: tell the parent what was done. The parent reads it when the child has ended."""
    with contextlib.suppress(FileNotFoundError):  # the parent is gone, and its folder with it
        path.write_text(json.dumps(asdict(report)), encoding="utf-8")


def as_child(path: Path, work: Callable[[], DrainReport | int]) -> int:
    """Run the loop of one child, and return its exit code."""
    threading.Thread(target=stop_with_parent, name="membox-queue-parent", daemon=True).start()
    report = work()
    if isinstance(report, int):
        return report
    write_report(path, report)
    return FAILED_ITEMS if report.failed else 0


def stop_with_parent() -> None:
    """In a thread: stop this process when the parent asks for it or is gone, unless a signal has done so."""
    # Not sys.stdin, whose lock an exiting interpreter would wait for.
    while os.read(0, 1024):
        pass
    time.sleep(SIGNAL_DELAY)
    if not is_any_stopped():
        os.kill(os.getpid(), signal.SIGTERM)
