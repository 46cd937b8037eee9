"""Run a verb in the caller's own transaction: the caller's library runs the statements that native code decides on."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.connections import apsw, django, sqlalchemy, sqlite3

if TYPE_CHECKING:
    from pathlib import Path

    from membox_queue.connections.sqlite3 import Runner


def run(connection: Any, path: Path | None, steps: _native.Enlistment) -> Any:
    """Run a verb on a connection of sqlite3, apsw, SQLAlchemy or Django; the caller commits or rolls back.

    Several changes are made all or none, in a savepoint. If the library begins transactions by itself and none is open
    yet, one is begun. A connection that commits each statement by itself is refused then.
    """
    execute, driver = opened(connection)
    check_same_file(execute, steps.location, path)
    step = steps.begin(not steps.is_atomic or is_in_transaction(driver))
    while isinstance(step, _native.Statement):
        try:
            cursor = execute(step.sql, step.values)
            rows = [tuple(row) for row in cursor.fetchall()] if step.returns_rows else []
        except Exception as error:
            step = steps.failed(error)
        else:
            step = steps.next(rows)
    return step


def opened(connection: Any) -> tuple[Runner, Any]:
    """Return what runs plain SQL on this connection, and the connection of the driver.

    Rows come as tuples, whatever its own row factory makes.
    """
    if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
        raise TypeError(
            f"{type(connection).__qualname__} is asynchronous; AsyncQueue takes the AsyncConnection and AsyncSession "
            f"of SQLAlchemy"
        )
    if django.accepts(connection):
        connection = django.driver_connection(connection)
    if sqlalchemy.accepts(connection):
        return sqlalchemy.runner(connection), sqlalchemy.driver_connection(connection)
    if apsw.accepts(connection):
        return apsw.runner(connection), connection
    if sqlite3.accepts(connection):
        return sqlite3.runner(connection), connection
    kinds = "sqlite3, apsw, SQLAlchemy or Django"
    raise TypeError(f"connection must be of {kinds}, not {type(connection).__qualname__}")


def is_in_transaction(driver: Any) -> bool:
    """Return whether a transaction is open. Raise ValueError if none is and the driver does not begin one by itself."""
    if driver.in_transaction:
        return True
    if not sqlite3.begins_transactions(driver):
        raise ValueError(
            "the connection has no open transaction, and each statement would be committed by itself; begin a "
            "transaction first, or leave connection out"
        )
    return False


def check_same_file(execute: Runner, location: _native.Statement, path: Path | None) -> None:
    """Raise ValueError if the connection is open on another file."""
    if path is None:
        raise ValueError(
            "a queue in memory belongs to its own object, and no other connection can write to it; use a file for "
            "enqueue(connection=…)"
        )
    row = execute(location.sql, location.values).fetchone()
    file = os.fsdecode(bytes(row[0] or b"")) if row else ""
    if not file or os.path.realpath(file) != os.fspath(path):
        raise ValueError(f"the connection is open on {file or 'memory'!r}, the queue lives in {str(path)!r}")
