"""What loops write to the log, each record with its fields in `extra`; docs/operations.md lists them."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from membox_queue import _native
    from membox_queue.loops.plan import Plan
    from membox_queue.loops.report import DrainReport

logger = logging.getLogger("membox_queue")


def fields(event: str, item: _native.Item | None = None, **more: Any) -> dict[str, Any]:
    """Return the fields of a record about an item, or about none."""
    about = {} if item is None else {"queue": item.queue, "item_id": item.id, "attempt": item.attempt}
    return {"event": event, **about, **more}


def name_of(handler: Any) -> str:
    """Return the name of a handler."""
    name = getattr(handler, "__qualname__", None)
    return f"{handler.__module__}:{name}" if name else type(handler).__qualname__


def log_started(queues: Sequence[_native.Queue], handlers: Iterable[str], plan: Plan) -> None:
    """Log that a loop has begun, and what it serves."""
    if not logger.isEnabledFor(logging.INFO):
        return
    told = fields(
        "worker_started",
        file=str(queues[0].path or ":memory:"),
        queues=[queue.name for queue in queues],
        handlers=list(handlers),
        kind="work" if plan.stays else "drain",
        concurrency=plan.concurrency,
        pid=os.getpid(),
    )
    words = "worker started: %s of %s in %s by %s, concurrency %d, pid %d"
    served = [", ".join(told["queues"]), told["file"], ", ".join(told["handlers"])]
    logger.info(words, told["kind"], *served, told["concurrency"], told["pid"], extra=told)


def log_stopped(queues: Sequence[_native.Queue], report: DrainReport, seconds: float) -> None:
    """Log that a loop has ended, and what it did."""
    if not logger.isEnabledFor(logging.INFO):
        return
    counts = {name: getattr(report, name) for name in report.__slots__}
    queues_named = [queue.name for queue in queues]
    done = ", ".join(f"{count} {name}" for name, count in counts.items() if count and not isinstance(count, bool))
    told = fields("worker_stopped", queues=queues_named, pid=os.getpid(), seconds=round(seconds, 3), report=counts)
    words = "worker stopped after %.1f s: %s (%s, pid %d)"
    logger.info(words, seconds, done or "nothing done", ", ".join(queues_named), os.getpid(), extra=told)


def log_claimed(items: Iterable[_native.Item]) -> None:
    """Log each item that was claimed, at DEBUG."""
    if logger.isEnabledFor(logging.DEBUG):
        for item in items:
            words = "item %d of %s claimed, attempt %d"
            logger.debug(words, item.id, item.queue, item.attempt, extra=fields("claimed", item))


def log_ended(items: Iterable[_native.Item], ends: Iterable[str], began: float) -> None:
    """Log how each item ended, at DEBUG."""
    if logger.isEnabledFor(logging.DEBUG):
        seconds = round(time.monotonic() - began, 6)
        for item, end in zip(items, ends, strict=False):
            told = fields("ended", item, ending=end, seconds=seconds)
            words = "item %d of %s %s after %.3f s, attempt %d"
            logger.debug(words, item.id, item.queue, end, seconds, item.attempt, extra=told)
