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

from membox_queue.legible import duration, line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from membox_queue import _native

    Progress = bool | Callable[["LoopEvent"], Any] | None

logger = logging.getLogger("membox_queue")


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """Something that happened to an item in a loop.

    `kind` is claimed, done, failed, postponed, released, lost or cancelled.
    """

    kind: Literal["claimed", "done", "failed", "postponed", "released", "lost", "cancelled"]
    item: _native.Item


class Watcher(contextlib.AbstractContextManager["Watcher"]):
    """Tells nobody, and is false."""

    def __bool__(self) -> bool:
        return type(self) is not Watcher

    def __call__(self, event: LoopEvent) -> None:
        """Tell of an event."""

    def stopping(self, grace: float) -> None:
        """Tell that the loop was asked to end, and that something still runs."""

    def __exit__(self, *_: object) -> None:
        """Nothing to take down."""


class Told(Watcher):
    """Tells a callable; what it raises is logged and goes no further."""

    def __init__(self, listener: Callable[[LoopEvent], Any]) -> None:
        self.listener = listener

    def __call__(self, event: LoopEvent) -> None:
        """Tell the callable."""
        try:
            self.listener(event)
        except Exception:
            logger.exception("progress raised")


class Lines(Watcher):
    """Tells on stderr, a line an item, what became of it and how many are still to come."""

    def __init__(self, queues: Sequence[_native.Queue]) -> None:
        self.queues = queues
        self.lock = threading.Lock()

    def __call__(self, event: LoopEvent) -> None:
        """Tell it, one at a time."""
        with whatever_the_terminal_does(), self.lock:
            self.tell(event)

    def tell(self, event: LoopEvent) -> None:
        """Write a line about what ended."""
        if event.kind in ("failed", "postponed"):
            self.complain(event)
        elif event.kind != "claimed":
            self.say(f"{title(event.item)} {event.kind}, {self.pending()} to go")

    def complain(self, event: LoopEvent) -> None:
        """Say what went wrong with an item."""
        error = next((now.error for queue in self.queues if (now := queue.get(event.item.id))), None)
        words = f"item {event.item.id} {event.kind}: {error or 'no reason given'}"
        self.say(words, "red" if event.kind == "failed" else "yellow")

    def stopping(self, grace: float) -> None:
        """Say that the signal was heard."""
        with whatever_the_terminal_does():
            self.say(stopping_words(grace), "yellow")

    def say(self, words: str, _style: str = "") -> None:
        """Write a line, cut where the terminal ends."""
        print(line(words, shutil.get_terminal_size().columns), file=sys.stderr, flush=True)

    def pending(self) -> int:
        """How many items are still to come."""
        return sum(queue.pending() for queue in self.queues)


class Bar(Lines):
    """A live bar: how many items have ended, of how many, what is in hand, and above it what failed."""

    def __init__(self, queues: Sequence[_native.Queue]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        super().__init__(queues)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24, complete_style="cyan", finished_style="green"),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[hand]}", style="dim", markup=False),
            console=Console(stderr=True, markup=False, highlight=False, emoji=False),
        )
        self.label = line(" · ".join(queue.name for queue in queues), 24)
        self.in_hand: dict[int, str] = {}
        self.ended = 0
        self.failed = 0

    def __enter__(self) -> Bar:
        self.bar.start()
        self.task = self.bar.add_task(self.label, total=self.pending(), hand="")
        return self

    def __exit__(self, *_: object) -> None:
        with whatever_the_terminal_does():
            self.bar.update(self.task, total=self.ended, completed=self.ended, hand="")
            self.bar.stop()

    def tell(self, event: LoopEvent) -> None:
        """Show how far it is, asking the file."""
        if event.kind == "claimed":
            self.in_hand[event.item.id] = title(event.item)
        else:
            self.in_hand.pop(event.item.id, None)
        if event.kind in ("failed", "postponed"):
            self.complain(event)
        self.ended += event.kind in ("done", "failed")
        self.failed += event.kind == "failed"
        label = f"{self.label}, {self.failed} failed" if self.failed else self.label
        total = self.ended + self.pending()
        hand = ", ".join(self.in_hand.values())
        self.bar.update(self.task, description=label, completed=self.ended, total=total, hand=line(hand, 24))

    def say(self, words: str, style: str = "") -> None:
        """Write a line above the bar."""
        self.bar.console.print(line(words, self.bar.console.width), style=style)


@contextlib.contextmanager
def whatever_the_terminal_does() -> Iterator[None]:
    """Let the work go on when the terminal is gone, or the file cannot be asked."""
    try:
        yield
    except Exception:
        logger.debug("progress cannot be shown", exc_info=True)


def stopping_words(grace: float) -> str:
    """What a loop that was asked to end says to the one who waits for it."""
    return f"stopping: what runs has {duration(grace)} to end; again to leave at once"


def title(item: _native.Item) -> str:
    """What people call an item: its file's name, else its number."""
    return PurePath(item.source_path).name if item.source_path else f"item {item.id}"


def watcher(progress: Progress, queues: Sequence[_native.Queue]) -> Watcher:
    """Whom to tell: nobody, a callable, or whoever looks at the terminal."""
    if callable(progress):
        return Told(progress)
    if progress and sys.stderr is not None and sys.stderr.isatty():
        try:
            return Bar(queues)
        except ModuleNotFoundError:
            return Lines(queues)
    return Watcher()
