"""Connections and sessions of SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.connections.sqlite3 import by_number

if TYPE_CHECKING:
    from membox_queue.connections.sqlite3 import Runner


def is_session(connection: Any) -> bool:
    """Return whether this is a session, which has a connection of its own."""
    return hasattr(connection, "get_bind") and hasattr(connection, "connection")


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection or session."""
    return is_session(connection) or hasattr(connection, "exec_driver_sql")


def own_connection(connection: Any) -> Any:
    """Return the connection, of a session its own."""
    return connection.connection() if is_session(connection) else connection


def driver_connection(connection: Any) -> Any:
    """Return the connection of the driver."""
    return own_connection(connection).connection.driver_connection


def runner(connection: Any) -> Runner:
    """Return what runs a statement; rows are tuples."""
    own = own_connection(connection)
    return lambda sql, values: own.exec_driver_sql(sql, by_number(values))
