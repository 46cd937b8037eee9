"""Progress: events for a callable, or a live bar on a terminal; plain lines there without rich."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from membox_queue.loops.log import fields
from membox_queue.terminal_text import duration, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from membox_queue import _native

    Progress = bool | Callable[["LoopEvent"], Any] | None

logger = logging.getLogger("membox_queue")


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """An event of one item in a loop.

    - `kind`: claimed, done, moved, blocked, failed, postponed, released, lost or cancelled.
    - `item`: the item, as it was claimed.
    """

    kind: Literal["claimed", "done", "moved", "blocked", "failed", "postponed", "released", "lost", "cancelled"]
    item: _native.Item


class Reporter(contextlib.AbstractContextManager["Reporter"]):
    """Reports nothing, and is false; the base of those that do report."""

    def __bool__(self) -> bool:
        return type(self) is not Reporter

    def __call__(self, event: LoopEvent) -> None:
        """Report an event."""

    def stopping(self, grace: float) -> None:
        """Report that the loop was asked to stop while handlers still run."""

    def __exit__(self, *_: object) -> None:
        """Nothing is shown, so nothing is removed."""


class CallbackReporter(Reporter):
    """Calls a function with each event; what it raises is logged and goes no further."""

    def __init__(self, listener: Callable[[LoopEvent], Any]) -> None:
        self.listener = listener

    def __call__(self, event: LoopEvent) -> None:
        """Call the function."""
        try:
            self.listener(event)
        except Exception:
            logger.exception("progress raised", extra=fields("progress_raised", event.item))


class LineReporter(Reporter):
    """Writes a line to stderr for each item that ended, with the number of items still pending."""

    def __init__(self, queues: Sequence[_native.Queue]) -> None:
        self.queues = queues
        self.lock = threading.Lock()

    def __call__(self, event: LoopEvent) -> None:
        """Show one event at a time."""
        with ignoring_display_errors(), self.lock:
            self.show(event)

    def show(self, event: LoopEvent) -> None:
        """Write a line about an item that ended."""
        if event.kind in ("failed", "postponed"):
            self.show_failure(event)
        elif event.kind != "claimed":
            self.write(f"{title(event.item)} {event.kind}, {self.pending()} to go")

    def show_failure(self, event: LoopEvent) -> None:
        """Write why an item failed."""
        error = next((now.error for queue in self.queues if (now := queue.get(event.item.id))), None)
        words = f"item {event.item.id} {event.kind}: {error or 'no reason given'}"
        self.write(words, "red" if event.kind == "failed" else "yellow")

    def stopping(self, grace: float) -> None:
        """Write that the loop is stopping."""
        with ignoring_display_errors():
            self.write(stopping_message(grace), "yellow")

    def write(self, words: str, _style: str = "") -> None:
        """Write a line, cut where the terminal ends."""
        print(line(words, shutil.get_terminal_size().columns), file=sys.stderr, flush=True)

    def pending(self) -> int:
        """Return how many items are pending."""
        return sum(queue.pending() for queue in self.queues)


class BarReporter(LineReporter):
    """A live bar: how many items ended, of how many, which ones run; failures are written above it."""

    def __init__(self, queues: Sequence[_native.Queue]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        super().__init__(queues)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24, complete_style="cyan", finished_style="green"),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[running]}", style="dim", markup=False),
            console=Console(stderr=True, markup=False, highlight=False, emoji=False),
        )
        self.label = line(" · ".join(queue.name for queue in queues), 24)
        self.running: dict[int, str] = {}
        self.ended = 0
        self.failed = 0

    def __enter__(self) -> BarReporter:
        self.bar.start()
        self.task = self.bar.add_task(self.label, total=self.pending(), running="")
        return self

    def __exit__(self, *_: object) -> None:
        with ignoring_display_errors():
            self.bar.update(self.task, total=self.ended, completed=self.ended, running="")
            self.bar.stop()

    def show(self, event: LoopEvent) -> None:
        """Update the bar; the number of pending items is read from the file."""
        if event.kind == "claimed":
            self.running[event.item.id] = title(event.item)
        else:
            self.running.pop(event.item.id, None)
        if event.kind in ("failed", "postponed"):
            self.show_failure(event)
        self.ended += event.kind in ("done", "failed")
        self.failed += event.kind == "failed"
        label = f"{self.label}, {self.failed} failed" if self.failed else self.label
        total = self.ended + self.pending()
        running = ", ".join(self.running.values())
        self.bar.update(self.task, description=label, completed=self.ended, total=total, running=line(running, 24))

    def write(self, words: str, style: str = "") -> None:
        """Write a line above the bar."""
        self.bar.console.print(line(words, self.bar.console.width), style=style)


@contextlib.contextmanager
def ignoring_display_errors() -> Iterator[None]:
    """Let the work go on when the terminal is gone, or the file cannot be read."""
    try:
        yield
    except Exception:
        logger.debug("progress cannot be shown", exc_info=True)


def stopping_message(grace: float) -> str:
    """Return what a loop that was asked to stop tells the user."""
    return f"Stopping; waiting up to {duration(grace)} for running items. Press Ctrl-C again to quit now."


def title(item: _native.Item) -> str:
    """Return what people call an item: the name of its file, else its id."""
    return PurePath(item.source_path).name if item.source_path else f"item {item.id}"


def reporter(progress: Progress, queues: Sequence[_native.Queue]) -> Reporter:
    """Return what reports progress: nothing, a callable, or a bar or lines on a terminal."""
    if callable(progress):
        return CallbackReporter(progress)
    if progress and sys.stderr is not None and sys.stderr.isatty():
        try:
            return BarReporter(queues)
        except ModuleNotFoundError:
            return LineReporter(queues)
    return Reporter()
