"""Connections and sessions of SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.connections import sqlite3

if TYPE_CHECKING:
    from membox_queue import _native


def is_session(connection: Any) -> bool:
    """Return whether this is a session, which has a connection of its own."""
    return hasattr(connection, "get_bind") and hasattr(connection, "connection")


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection or session."""
    return is_session(connection) or hasattr(connection, "exec_driver_sql")


class Link(sqlite3.Link):
    """A link to a connection or session. They keep account of transactions, so they begin and end blocks themselves."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        # Asked first: whatever runs on the connection begins a transaction of the library.
        self.was_open = bool(connection.in_transaction())
        self.savepoint: Any = None

    @property
    def own_connection(self) -> Any:
        """The connection, of a session its own."""
        return self.connection.connection() if is_session(self.connection) else self.connection

    @property
    def driver(self) -> Any:
        """The connection of the driver."""
        return self.own_connection.connection.driver_connection

    @property
    def is_begun(self) -> bool:
        """Whether the connection has a transaction open. Asking a session for its connection would begin one."""
        return bool(self.connection.in_transaction()) and super().is_begun

    @property
    def is_open(self) -> bool:
        """Whether the caller has begun a transaction."""
        return self.was_open

    def execute(self, sql: str, values: list[Any]) -> Any:
        """Run a statement and return its cursor; rows are tuples."""
        return self.own_connection.exec_driver_sql(sql, sqlite3.by_number(values))

    def reset(self) -> None:
        """End the transaction of the library that only looking at the connection has begun."""
        self.connection.rollback()

    def run(self, statement: _native.Statement) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        match statement.block:
            case None | "begin":
                return super().run(statement)
            case "savepoint":
                self.savepoint = self.connection.begin_nested()
            case "release":
                # One that was undone has ended.
                if self.savepoint.is_active:
                    self.savepoint.commit()
            case "undo":
                self.savepoint.rollback()
            case "commit":
                self.connection.commit()
            case "roll_back":
                self.connection.rollback()
        return []
