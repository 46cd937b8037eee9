"""Connections of Python's sqlite3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from membox_queue import _native


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection, or one of a library with the same methods."""
    return hasattr(connection, "cursor")


class Link:
    """What a verb needs of a connection; the links to other libraries override what differs."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @property
    def driver(self) -> Any:
        """The connection of the driver."""
        return self.connection

    @property
    def is_begun(self) -> bool:
        """Whether the connection has a transaction open."""
        return bool(self.driver.in_transaction)

    @property
    def is_open(self) -> bool:
        """Whether the caller has begun a transaction. A library may know of one that has not reached the driver yet."""
        return self.is_begun

    @property
    def begins_by_itself(self) -> bool:
        """Whether the library begins a transaction by itself, at the first change."""
        # From Python 3.12 on, a connection may have the attribute; -1 means that `isolation_level` decides, as before.
        decides = getattr(self.driver, "autocommit", -1) == -1
        return decides and getattr(self.driver, "isolation_level", None) is not None

    def execute(self, sql: str, values: list[Any]) -> Any:
        """Run a statement and return its cursor; rows are tuples."""
        cursor = self.driver.cursor()
        cursor.row_factory = None
        return cursor.execute(sql, by_number(values))

    def reset(self) -> None:
        """Undo what only looking at the connection has begun."""

    def run(self, statement: _native.Statement) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        cursor = self.execute(statement.sql, statement.values)
        return [tuple(row) for row in cursor.fetchall()] if statement.returns_rows else []


def by_number(values: list[Any]) -> dict[str, Any]:
    """Return the values by their numbers: sqlite3 reads `?1` as a name, and from Python 3.14 on refuses a list."""
    return {str(number): value for number, value in enumerate(values, 1)}
