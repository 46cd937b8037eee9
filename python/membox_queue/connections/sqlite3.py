"""Connections of Python's sqlite3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Runner = Callable[[str, list[Any]], Any]


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection, or one of a library with the same methods."""
    return hasattr(connection, "cursor")


def runner(connection: Any) -> Runner:
    """Return what runs a statement; rows are tuples."""

    def run(sql: str, values: list[Any]) -> Any:
        cursor = connection.cursor()
        cursor.row_factory = None
        return cursor.execute(sql, by_number(values))

    return run


def begins_transactions(connection: Any) -> bool:
    """Return whether the library begins a transaction by itself, at the first change."""
    # From Python 3.12 on, a connection may have the attribute; -1 means that `isolation_level` decides, as before.
    decides = getattr(connection, "autocommit", -1) == -1
    return decides and getattr(connection, "isolation_level", None) is not None


def by_number(values: list[Any]) -> dict[str, Any]:
    """Return the values by their numbers: sqlite3 reads `?1` as a name, and from Python 3.14 on refuses a list."""
    return {str(number): value for number, value in enumerate(values, 1)}
