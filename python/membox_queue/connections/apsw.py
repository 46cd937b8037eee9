"""Connections of apsw."""

from __future__ import annotations

from typing import Any

from membox_queue.connections import sqlite3


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection."""
    return hasattr(connection, "last_insert_rowid")


class Link(sqlite3.Link):
    """A link to a connection of apsw, which begins no transaction by itself."""

    def execute(self, sql: str, values: list[Any]) -> Any:
        """Run a statement and return its cursor; rows are tuples."""
        cursor = self.connection.cursor()
        cursor.row_trace = lambda _, row: row
        return cursor.execute(sql, values)
