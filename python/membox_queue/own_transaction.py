"""Enqueueing in the caller's own transaction: the caller's library runs the statements that native code decides on."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from membox_queue import _native

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Runner = Callable[[str, list[Any]], Any]


def enqueue(connection: Any, path: Path | None, steps: _native.Enlistment) -> int:
    """Run an enqueue on a connection of sqlite3, apsw, SQLAlchemy or Django; their commit or rollback decides."""
    execute = _runner(connection)
    _check_same_file(execute, path)
    step = steps.begin()
    while isinstance(step, _native.Statement):
        try:
            cursor = execute(step.sql, step.values)
            rows = [tuple(row) for row in cursor.fetchall()] if step.returns_rows else []
        except Exception as error:
            step = steps.failed(error)
        else:
            step = steps.next(rows)
    return step


def _runner(connection: Any) -> Runner:
    """How this kind of connection runs plain SQL. Rows come as tuples, whatever it makes of its own."""
    if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
        raise TypeError(
            f"{type(connection).__qualname__} is asynchronous; AsyncQueue.enqueue takes the AsyncConnection and "
            f"AsyncSession of SQLAlchemy"
        )
    if hasattr(connection, "ensure_connection"):  # Django
        connection.ensure_connection()
        connection = connection.connection
    if hasattr(connection, "get_bind") and hasattr(connection, "connection"):
        connection = connection.connection()  # a SQLAlchemy session
    if hasattr(connection, "exec_driver_sql"):
        return lambda sql, values: connection.exec_driver_sql(sql, _by_number(values))
    if hasattr(connection, "last_insert_rowid"):
        return lambda sql, values: _plain(connection.cursor(), "row_trace").execute(sql, values)  # apsw
    if hasattr(connection, "cursor"):
        return lambda sql, values: _plain(connection.cursor(), "row_factory").execute(sql, _by_number(values))
    kinds = "sqlite3, apsw, SQLAlchemy or Django"
    raise TypeError(f"connection must be of {kinds}, not {type(connection).__qualname__}")


def _plain(cursor: Any, what_makes_rows: str) -> Any:
    """A cursor whose rows are tuples."""
    setattr(cursor, what_makes_rows, None if what_makes_rows == "row_factory" else lambda _, row: row)
    return cursor


def _by_number(values: list[Any]) -> dict[str, Any]:
    """Our parameters have numbers, which sqlite3 takes for names; from Python 3.14 on it refuses a list for them."""
    return {str(number): value for number, value in enumerate(values, 1)}


def _check_same_file(execute: Runner, path: Path | None) -> None:
    # As bytes: a path need not be valid text.
    row = execute("SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'", []).fetchone()
    file = os.fsdecode(bytes(row[0] or b"")) if row else ""
    if path is None or not file or os.path.realpath(file) != os.fspath(path):
        raise ValueError(f"the connection is open on {file or 'memory'!r}, the queue lives in {str(path)!r}")
