"""Connections of Django, which hold one of Python's sqlite3."""

from __future__ import annotations

from typing import Any


def accepts(connection: Any) -> bool:
    """Return whether this is such a connection."""
    return hasattr(connection, "ensure_connection")


def driver_connection(connection: Any) -> Any:
    """Return the connection of the driver, opened if need be."""
    connection.ensure_connection()
    return connection.connection
