"""Connections of apsw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from membox_queue.connections.sqlite3 import Runner


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection."""
    return hasattr(connection, "last_insert_rowid")


def runner(connection: Any) -> Runner:
    """Return what runs a statement; rows are tuples."""

    def run(sql: str, values: list[Any]) -> Any:
        cursor = connection.cursor()
        cursor.row_trace = lambda _, row: row
        return cursor.execute(sql, values)

    return run
