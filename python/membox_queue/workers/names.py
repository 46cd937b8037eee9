"""Handlers and types by name, `package.module:function`, as another process imports them."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from membox_queue.content.generic import shape_of
from membox_queue.loops.loop import HandlesItems
from membox_queue.loops.registry import Registry
from membox_queue.opening import content_shape, given_options, reopen_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from membox_queue import _native

MOVE = "move it into a module of its own, and import it from there"


def check_spawn(queue: _native.Queue, handler: str) -> None:
    """Raise ValueError for a handler or a type that a worker could not import, before anything is written."""
    check_handler(handler)
    type_named(queue)


def check_handler(handler: Any) -> None:
    """Raise ValueError for a name that no worker could import: `package.module:function` or `package.module`."""
    if callable(handler) and hasattr(handler, "__qualname__"):
        raise ValueError(name_instead(handler))
    module, separator, name = handler.partition(":") if isinstance(handler, str) else ("", "", "")
    if not module or (separator and not name):
        raise ValueError(f"a worker's handler is named 'package.module:function', not {handler!r}")
    if module == "__main__":
        raise ValueError(f"{handler!r} is in the program that runs, which a worker cannot import; {MOVE}")
    if module.endswith(".py"):
        wanted = f"package.module:{name}" if name else "package.module"
        raise ValueError(f"a worker's handler is named by its module, not its file: {wanted!r}")
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"the module of {handler!r} cannot be found: {error}") from error
    if found is None:
        raise ValueError(f"the module of {handler!r} cannot be found; is it importable where you run this?")


def name_instead(handler: Any) -> str:
    """Return what to give instead of a function itself."""
    finds = "a worker is another process and finds its handler by its name"
    if "<" in handler.__qualname__:
        kind = "a lambda" if handler.__qualname__.endswith("<lambda>") else "a function inside a function"
        return f"{finds}, which {kind} does not have; define it at the top of a module and give 'package.module:name'"
    if handler.__module__ == "__main__":
        return f"{finds}; {handler.__qualname__} is in the program that runs, which a worker cannot import; {MOVE}"
    return f"{finds}: give {f'{handler.__module__}:{handler.__qualname__}'!r}"


def load_handler(handler: str) -> Callable[[Any], Any]:
    """Import what 'package.module:function' names; of a queue or a module, the one handler that it has."""
    found = load_handlers(handler)
    if len(found) > 1:
        raise ValueError(f"{handler!r} has several handlers, and one is needed here; name one: {listed(found)}")
    return found[0]


def load_handlers(handler: str) -> list[Callable[[Any], Any]]:
    """Import a function, or all handlers that are registered with a queue or with the queues of a module."""
    check_handler(handler)
    module, _, name = handler.partition(":")
    loaded: Any = importlib.import_module(module)
    if not name:
        return handlers_of_module(loaded)
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise ValueError(f"{module} has no {name}")
        loaded = getattr(loaded, part)
    if (registry := registry_of(loaded)) is not None:
        if not registry:
            raise ValueError(f"{handler!r} is a queue without handlers; register one with @{name}.handler")
        return list(registry.values())
    if not callable(loaded):
        raise ValueError(f"{handler!r} is not callable")
    return [loaded]


def handlers_of_module(module: ModuleType) -> list[Callable[[Any], Any]]:
    """Return all handlers that are registered with the queues of a module, and those that it imports."""
    found: dict[int, Any] = {}
    for value in vars(module).values():
        registered = [value] if isinstance(value, HandlesItems) else (registry_of(value) or {}).values()
        found.update((id(each), each) for each in registered)
    if not found:
        name = module.__name__
        raise ValueError(f"{name} has no queue with registered handlers; name a function of it: '{name}:function'")
    return list(found.values())


def registry_of(value: Any) -> Registry[Any] | None:
    """Return the handlers that were registered with a queue; None for anything else."""
    try:
        found = getattr(value, "_handlers", None)
    except Exception:  # an attribute of some object of the application
        return None
    return found if isinstance(found, Registry) else None


def listed(handlers: list[Any]) -> str:
    """Return the names of registered handlers."""
    return ", ".join(f"{handler.__module__}:{handler.__qualname__}" for handler in handlers)


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
    return db or own.path, name or own.name, dict(reopen_options(own) if is_same else given_options(own))


def type_named(queue: _native.Queue) -> dict[str, Any]:
    """Return the type of a queue's content by a name that another process can import."""
    shape = content_shape(queue)
    if shape is None:
        return {}
    kind = shape.type
    name = f"{kind.__module__}:{kind.__qualname__}" if isinstance(kind, type) else ""
    try:
        found = bool(name) and imported(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if name.startswith("__main__:"):
        said = f"the type {shape.name} is defined in the program that runs, which a worker cannot import; {MOVE}"
        raise ValueError(said)
    if found is not kind:
        raise ValueError(f"a worker cannot import the type {shape.name}; make it a class of a module")
    return {"type": name}


def imported(name: str) -> Any:
    """Import and return what 'package.module:name' names."""
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))
