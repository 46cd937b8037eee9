"""Connections of Django, which hold one of Python's sqlite3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.connections import sqlite3

if TYPE_CHECKING:
    from membox_queue import _native


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection."""
    return hasattr(connection, "ensure_connection")


class Link(sqlite3.Link):
    """A link to a connection of Django, which is opened if need be."""

    def __init__(self, connection: Any) -> None:
        connection.ensure_connection()
        super().__init__(connection)

    @property
    def driver(self) -> Any:
        """The connection of the driver."""
        return self.connection.connection

    def run(self, statement: _native.Statement) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. Django keeps account of a transaction, as `transaction.atomic` does."""
        connection = self.connection
        if statement.block == "begin":
            super().run(statement)
            connection.autocommit, connection.in_atomic_block = False, True
            connection.commit_on_exit, connection.needs_rollback = True, False
        elif statement.block == "commit":
            connection.validate_no_broken_transaction()
            connection.in_atomic_block = False
            connection.commit()
            connection.set_autocommit(True)
        elif statement.block == "roll_back":
            connection.in_atomic_block = connection.needs_rollback = False
            connection.rollback()
            connection.set_autocommit(True)
        else:
            return super().run(statement)
        return []
