"""A queue at a glance, as plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.wire.item import brief, worker_fields

if TYPE_CHECKING:
    from membox_queue.queue import Queue


def now() -> datetime:
    """Return the time of the clock that all queues of this process use."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=_native.clock())


def look(queue: Queue, failures: int = 5, running: int = 20) -> dict[str, Any]:
    """Return all that an overview shows."""
    stats = queue.stats()
    return {
        "file": str(queue.path),
        "queue": queue.name,
        **stats,
        "workers": [worker_fields(worker) for worker in stats["workers"]],
        "coverage_note": queue.coverage_note(),
        "running": [brief(item) for item in queue.running(limit=running)],
        "failures": [brief(item) for item in queue.failures(limit=failures)],
        "queues": queue.queues(),
    }
