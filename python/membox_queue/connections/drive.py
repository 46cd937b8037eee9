"""Enqueue in the caller's own transaction: the caller's library runs the statements."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from membox_queue.connections import apsw, django, sqlalchemy, sqlite3
from membox_queue.errors import DuplicateItemError, QueueFullError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from membox_queue.connections.sqlite3 import Runner

    Statement = tuple[str, list[Any]]


def enqueue(
    connection: Any,
    path: Path | None,
    statements: dict[str, Statement],
    on_duplicate: str,
    key: str | None,
    max_pending: int | None,
) -> int:
    """Run an enqueue on a connection of sqlite3, apsw, SQLAlchemy or Django; the caller commits or rolls back."""
    execute = runner_for(connection)
    check_same_file(execute, path)
    found = find_key(execute, statements)
    if found is None:
        if max_pending is not None:
            check_room(execute, statements, max_pending)
        try:
            if "free" in statements:
                execute(*statements["free"])
            inserted = execute(*statements["insert"])
        except Exception:
            # The caller's transaction may have begun only now, after another connection enqueued the key.
            found = find_key(execute, statements)
            if found is None:
                raise
        else:
            id = new_id(inserted)
            check_written(execute)
            return id
    id, status = found
    if on_duplicate == "raise" or (on_duplicate == "replace" and status != "pending"):
        raise DuplicateItemError(f"an item with the key {key!r} exists already: {id}", id)
    if on_duplicate == "replace":
        sql, values = statements["replace"]
        execute(sql, [id, *values])
        check_written(execute)
    return id


def find_key(execute: Runner, statements: dict[str, Statement]) -> tuple[int, str] | None:
    """Return the id and the status of the item that has the key; None if there is none."""
    row = execute(*statements["find"]).fetchone() if "find" in statements else None
    return None if row is None else (int(row[0]), text(row[1]))


def check_room(execute: Runner, statements: dict[str, Statement], max_pending: int) -> None:
    """Raise QueueFullError if one more pending item is above the limit."""
    counts = execute(*statements["counts"]).fetchone()
    pending = int(counts[0]) + 1 if counts else 1
    if pending > max_pending:
        raise QueueFullError(
            f"the queue would hold {pending} pending items and may hold {max_pending}; wait for workers, or raise "
            f"max_pending"
        )


def runner_for(connection: Any) -> Runner:
    """Return what runs plain SQL on this connection. Rows come as tuples, whatever its own row factory makes."""
    if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
        raise TypeError(
            f"{type(connection).__qualname__} is asynchronous; AsyncQueue.enqueue takes the AsyncConnection and "
            f"AsyncSession of SQLAlchemy"
        )
    if django.accepts(connection):
        connection = django.driver_connection(connection)
    if sqlalchemy.accepts(connection):
        return sqlalchemy.runner(connection)
    if apsw.accepts(connection):
        return apsw.runner(connection)
    if sqlite3.accepts(connection):
        return sqlite3.runner(connection)
    kinds = "sqlite3, apsw, SQLAlchemy or Django"
    raise TypeError(f"connection must be of {kinds}, not {type(connection).__qualname__}")


def new_id(cursor: Any) -> int:
    """Return the id of the row that a cursor has inserted."""
    if hasattr(cursor, "lastrowid"):
        return int(cursor.lastrowid)
    return int(cursor.connection.last_insert_rowid())


def check_written(execute: Runner) -> None:
    """Raise StorageError for a write without effect: the id that it seems to have is another item's."""
    if not execute("SELECT changes()", []).fetchone()[0]:
        raise StorageError(
            "the item was not written: a trigger of the application on ingest_queue ignored the change "
            "(RAISE(IGNORE)), and nothing was stored; change the trigger or drop it"
        )


def text(value: Any) -> str:
    """Return a text that the connection's `text_factory` may have turned into bytes."""
    return bytes(value).decode() if isinstance(value, bytes | bytearray) else str(value)


def check_same_file(execute: Runner, path: Path | None) -> None:
    """Raise ValueError if the connection is open on another file."""
    # As bytes: a path need not be valid text.
    row = execute("SELECT CAST(file AS BLOB) FROM pragma_database_list WHERE name = 'main'", []).fetchone()
    file = os.fsdecode(bytes(row[0] or b"")) if row else ""
    if path is None or not file or os.path.realpath(file) != os.fspath(path):
        raise ValueError(f"the connection is open on {file or 'memory'!r}, the queue lives in {str(path)!r}")
