"""What the front ends need of an `AsyncQueue`: the twin of a `Queue`, and a loop over several queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.aio.queue import AsyncQueue
from membox_queue.opening import reopen_options

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from membox_queue.loops.plan import Plan
    from membox_queue.loops.report import DrainReport
    from membox_queue.queue import Queue


def twin_of(queue: Queue[Any]) -> AsyncQueue[Any]:
    """Return an `AsyncQueue` of the same file, name, type and options."""
    path = ":memory:" if queue.path is None else queue.path
    return AsyncQueue(path, queue.name, type=queue.type, **reopen_options(queue))


def loop_over_all(
    queue: AsyncQueue[Any], handler: Any, plan: Plan, others: Sequence[tuple[Queue[Any], Any]]
) -> Coroutine[Any, Any, DrainReport]:
    """Run a loop over a queue and others of its file, each with its handler."""
    return queue._loop(handler, plan, queue._stops, others)
