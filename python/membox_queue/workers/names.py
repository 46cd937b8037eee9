"""Handlers and types by name, `package.module:function`, as another process imports them."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from membox_queue.content.generic import shape_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from membox_queue import _native

MOVE = "move it into a module of its own, and import it from there"


def check_spawn(queue: _native.Queue, handler: str) -> None:
    """Raise ValueError for a handler or a type that a worker could not import, before anything is written."""
    check_handler(handler)
    type_named(queue)


def check_handler(handler: str) -> None:
    """Raise ValueError for a name that no worker could import."""
    module, _, name = handler.partition(":") if isinstance(handler, str) else ("", "", "")
    if callable(handler) and hasattr(handler, "__qualname__"):
        its_name = f"{handler.__module__}:{handler.__qualname__}"
        if "<" in its_name or handler.__module__ == "__main__":
            kind = "a lambda" if "<lambda>" in its_name else repr(handler.__qualname__)
            raise ValueError(
                f"a worker is another process and imports its handler, which it cannot do with {kind}; define a "
                "function at the top of a module, and give 'package.module:function'"
            )
        raise ValueError(f"a worker is another process and finds its handler by its name: give {its_name!r}")
    if not module or not name:
        raise ValueError(f"a worker's handler is named 'package.module:function', not {handler!r}")
    if module == "__main__":
        raise ValueError(f"{handler!r} is in the program that runs, which a worker cannot import; {MOVE}")
    if module.endswith(".py"):
        raise ValueError(f"a worker's handler is named by its module, not its file: 'package.module:{name}'")
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"the module of {handler!r} cannot be found: {error}") from error
    if found is None:
        raise ValueError(f"the module of {handler!r} cannot be found; is it importable where you run this?")


def load_handler(handler: str) -> Callable[[Any], Any]:
    """Import what 'package.module:function' names."""
    check_handler(handler)
    module, _, name = handler.partition(":")
    loaded: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise ValueError(f"{module} has no {name}")
        loaded = getattr(loaded, part)
    if isinstance(getattr(loaded, "_handlers", None), dict):
        loaded = registered(handler, loaded)
    if not callable(loaded):
        raise ValueError(f"{handler!r} is not callable")
    return loaded  # type: ignore[no-any-return]


def registered(name: str, queue: Any) -> Any:
    """Return the one handler that was registered with a queue."""
    handlers = list(queue._handlers.values())
    if len(handlers) != 1:
        known = ", ".join(f"{handler.__module__}:{handler.__qualname__}" for handler in handlers) or "none"
        raise ValueError(f"{name!r} is a queue, and must have one handler to be served by its name; it has: {known}")
    return handlers[0]


def queue_of(handler: Any, db: Any, name: str | None) -> tuple[Any, str, dict[str, Any]]:
    """Return the file, name and options of the queue that a handler serves.

    A registered handler knows them; `db` and `name` take precedence.
    """
    from membox_queue.loops import handler as handlers

    if not isinstance(handler, handlers.Handler | handlers.AsyncHandler):
        wanted = handlers.type_wanted(handler)
        try:
            shape_of(wanted)
        except TypeError as error:
            raise ValueError(f"the handler cannot be served: {error}") from error
        return db or "memory.db", name or "ingest", {"type": wanted}
    own = handler.queue
    if db is None and own.path is None:
        raise ValueError(f"{handler.__name__} was registered with a queue in memory; say which file to serve")
    is_same = db is None or Path(db).resolve() == own.path
    is_same &= name in (None, own.name)
    # Another queue may not have the settings yet.
    return db or own.path, name or own.name, dict(own._reopen_options if is_same else own._given)


def type_named(queue: _native.Queue) -> dict[str, Any]:
    """Return the type of a queue's content by a name that another process can import."""
    if queue._shape is None:
        return {}
    kind = queue._shape.type
    name = f"{kind.__module__}:{kind.__qualname__}" if isinstance(kind, type) else ""
    try:
        found = bool(name) and imported(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if name.startswith("__main__:"):
        said = f"the type {queue._shape.name} is defined in the program that runs, which a worker cannot import; {MOVE}"
        raise ValueError(said)
    if found is not kind:
        raise ValueError(f"a worker cannot import the type {queue._shape.name}; make it a class of a module")
    return {"type": name}


def imported(name: str) -> Any:
    """Import and return what 'package.module:name' names."""
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))
