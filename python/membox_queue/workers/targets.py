"""What the command serves: from names as they are typed to queues and their handlers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from membox_queue.loops.loop import HandlesItems
from membox_queue.workers.names import load_handlers, queue_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Served:
    """One queue and its handler."""

    file: str | os.PathLike[str]
    name: str
    handler: Callable[[Any], Any]
    options: dict[str, Any]


def serve(targets: Sequence[str], db: Any, queue: str | None, *, is_announced: bool = False) -> list[Served]:
    """Import what the targets name, and return the queues to serve. Raises ValueError for what cannot be served.

    - A target is `package.module:function`, `package.module:queue` or `package.module`; `name=` before it says which
      queue a function serves.
    - `db`: the file; by default that of the registered handlers.
    - `queue`: of one handler, the queue that it serves; of several, the only one to serve.
    - `is_announced`: the caller's queue is `queue`, and of several handlers all are served.
    """
    found: list[tuple[str | None, Any]] = []
    for target in targets:
        name, separator, rest = target.partition("=")
        handlers = load_handlers(rest if separator else target)
        if separator and (not name or len(handlers) > 1):
            raise ValueError(f"{target!r} must name one queue and one function: 'queue=package.module:function'")
        if separator and isinstance(handlers[0], HandlesItems) and queue_named(handlers[0]).name != name:
            own_queue = queue_named(handlers[0]).name
            raise ValueError(f"{rest!r} is registered for the queue {own_queue!r}; leave {name + '='!r} out")
        # A queue and one of its handlers may be given together.
        known = [handler for _, handler in found]
        found += [(name if separator else None, handler) for handler in handlers if handler not in known]
    if len(found) == 1 and (":" in targets[0] or not is_announced):
        ((own, handler),) = found
        if own is not None and queue not in (None, own):
            raise ValueError(f"{targets[0]!r} serves the queue {own!r}, and --queue names {queue!r}; leave one out")
        return [Served(*queue_for(handler, db, own or queue))]
    return several(found, db, queue, is_announced=is_announced)


def several(found: list[tuple[str | None, Any]], db: Any, queue: str | None, *, is_announced: bool) -> list[Served]:
    """Return the queues of several handlers, each of which must have its own, all in one file."""
    for name, handler in found:
        if name is None and not isinstance(handler, HandlesItems):
            named = f"{handler.__module__}:{handler.__qualname__}"
            raise ValueError(f"{named} does not say which queue it serves; give 'queue={named}'")
    served = {}
    # Plain functions serve the file of the registered handlers.
    registered = [queue_named(handler).path for _, handler in found if isinstance(handler, HandlesItems)]
    default = next((path for path in registered if path is not None), None)
    for name, handler in found:
        file = db or (None if isinstance(handler, HandlesItems) else default)
        one = Served(*queue_for(handler, file, name))
        if one.name in served:
            raise ValueError(f"the queue {one.name!r} has two handlers; give one of them")
        served[one.name] = one
    files = sorted({os.path.realpath(one.file) for one in served.values()})
    if len(files) > 1:
        raise ValueError(
            f"the handlers are in several files: {', '.join(files)}; start a worker for each, or give --db"
        )
    if queue is not None and queue not in served:
        raise ValueError(f"there is no handler for the queue {queue!r}; there are some for: {', '.join(served)}")
    return [served[queue]] if queue is not None and not is_announced else list(served.values())


def queue_for(handler: Any, db: Any, name: str | None) -> tuple[Any, str, Callable[[Any], Any], dict[str, Any]]:
    """Return the file, the queue, its handler and the options of the queue."""
    file, name, options = queue_of(handler, db, name)
    return file, name, handler, options


def queue_named(handler: Any) -> Any:
    """Return the queue that a registered handler belongs to."""
    return handler.queue
