"""Progress: events for a callable, or a live bar on a terminal."""

from __future__ import annotations

import contextlib
import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from membox_queue.errors import QueueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from membox_queue import _native

    Progress = bool | Callable[["LoopEvent"], Any] | None

logger = logging.getLogger("membox_queue")


@dataclass(frozen=True, slots=True)
class LoopEvent:
    """Something that happened to an item in a loop.

    `kind` is claimed, done, failed, postponed, released or lost.
    """

    kind: str
    item: _native.Item


class Watcher(contextlib.AbstractContextManager["Watcher"]):
    """Tells nobody, and is false."""

    def __bool__(self) -> bool:
        return type(self) is not Watcher

    def __call__(self, event: LoopEvent) -> None:
        """Tell of an event."""

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


class Bar(Watcher):
    """A live bar: how many items have ended, of how many."""

    def __init__(self, queues: Sequence[_native.Queue]) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.queues = queues
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), transient=False
        )
        self.ended = 0
        self.failed = 0

    def __enter__(self) -> Bar:
        self.bar.start()
        self.task = self.bar.add_task(" · ".join(queue.name for queue in self.queues), total=self.pending())
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.update(self.task, total=self.ended, completed=self.ended)
        self.bar.stop()

    def __call__(self, event: LoopEvent) -> None:
        """Move the bar."""
        if event.kind == "claimed":
            return
        try:
            self.move(event)
        except QueueError:
            logger.debug("the bar stands still", exc_info=True)

    def move(self, event: LoopEvent) -> None:
        """Show how far it is, asking the file."""
        self.ended += event.kind in ("done", "failed")
        self.failed += event.kind == "failed"
        name = " · ".join(queue.name for queue in self.queues)
        label = f"{name}, {self.failed} failed" if self.failed else name
        self.bar.update(self.task, description=label, completed=self.ended, total=self.ended + self.pending())

    def pending(self) -> int:
        """How many items are still to come."""
        return sum(queue.pending() for queue in self.queues)


def watcher(progress: Progress, queues: Sequence[_native.Queue]) -> Watcher:
    """Whom to tell: nobody, a callable, or whoever looks at the terminal."""
    if callable(progress):
        return Told(progress)
    if progress and sys.stderr.isatty():
        return Bar(queues)
    return Watcher()
