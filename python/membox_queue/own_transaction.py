"""Enqueueing in a transaction of the caller's own: their library runs our statements."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from membox_queue.errors import DuplicateItemError, QueueFullError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Runner = Callable[[str, list[Any]], Any]

Statement = tuple[str, list[Any]]


def enqueue(
    connection: Any,
    path: Path | None,
    statements: dict[str, Statement],
    on_duplicate: str,
    key: str | None,
    max_pending: int | None,
) -> int:
    """Run an enqueue on a connection of sqlite3, apsw, SQLAlchemy or Django; their commit or rollback decides."""
    execute = _runner(connection)
    _check_same_file(execute, path)
    found = _found(execute, statements)
    if found is None:
        if max_pending is not None:
            _check_room(execute, statements, max_pending)
        try:
            if "free" in statements:
                execute(*statements["free"])
            inserted = execute(*statements["insert"])
        except Exception:
            # Their transaction may have begun only now, and somebody may have enqueued the key since we looked.
            found = _found(execute, statements)
            if found is None:
                raise
        else:
            id = _new_id(inserted)
            _check_written(execute)
            return id
    id, status = found
    if on_duplicate == "raise" or (on_duplicate == "replace" and status != "pending"):
        raise DuplicateItemError(f"an item with the key {key!r} exists already: {id}", id)
    if on_duplicate == "replace":
        sql, values = statements["replace"]
        execute(sql, [id, *values])
        _check_written(execute)
    return id


def _found(execute: Runner, statements: dict[str, Statement]) -> tuple[int, str] | None:
    """The item that has the key, and its status."""
    row = execute(*statements["find"]).fetchone() if "find" in statements else None
    return None if row is None else (int(row[0]), _text(row[1]))


def _check_room(execute: Runner, statements: dict[str, Statement], max_pending: int) -> None:
    counts = execute(*statements["counts"]).fetchone()
    pending = int(counts[0]) + 1 if counts else 1
    if pending > max_pending:
        raise QueueFullError(
            f"the queue would hold {pending} pending items and may hold {max_pending}; wait for workers, or raise "
            f"max_pending"
        )


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


def _new_id(cursor: Any) -> int:
    if hasattr(cursor, "lastrowid"):
        return int(cursor.lastrowid)
    return int(cursor.connection.last_insert_rowid())  # apsw


def _check_written(execute: Runner) -> None:
    """Refuse a write without effect: the id that it seems to have is another item's."""
    if not execute("SELECT changes()", []).fetchone()[0]:
        raise StorageError(
            "the item was not written: a trigger of the application on ingest_queue ignored the change "
            "(RAISE(IGNORE)), and nothing was stored; change the trigger or drop it"
        )


def _text(value: Any) -> str:
    """A text that the connection's `text_factory` may have turned into bytes."""
    return bytes(value).decode() if isinstance(value, bytes | bytearray) else str(value)


def _check_same_file(execute: Runner, path: Path | None) -> None:
    # As bytes: a path need not be valid text.
    row = execute("SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'", []).fetchone()
    file = os.fsdecode(bytes(row[0] or b"")) if row else ""
    if path is None or not file or os.path.realpath(file) != os.fspath(path):
        raise ValueError(f"the connection is open on {file or 'memory'!r}, the queue lives in {str(path)!r}")
