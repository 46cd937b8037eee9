"""Connections that are awaited: SQLAlchemy's asynchronous ones, and those of aiosqlite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Caller = Callable[[Callable[[Any], Any]], Coroutine[Any, Any, Any]]


def caller(connection: Any) -> Caller | None:
    """Return what calls a function with the plain connection, where that may be used; None for a plain connection."""
    if hasattr(connection, "run_sync"):
        run_sync: Caller = connection.run_sync
        return run_sync
    if type(connection).__module__.partition(".")[0] == "aiosqlite":
        # Its thread runs the whole verb, so that no statement of another task comes in between.
        return lambda function: connection._execute(lambda: function(connection._conn))
    return None


def on(connection: Any) -> Caller:
    """Return the same for a connection that must be awaited."""
    if (found := caller(connection)) is not None:
        return found
    raise TypeError(
        f"{type(connection).__qualname__} is not asynchronous; AsyncItem.transaction takes the AsyncConnection and "
        f"AsyncSession of SQLAlchemy, and connections of aiosqlite"
    )
