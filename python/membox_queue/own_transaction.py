"""Enqueueing in a transaction of the caller's own: their library runs our statements."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from membox_queue.errors import DuplicateItemError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Statement = tuple[str, list[Any]]


def enqueue(
    connection: Any,
    path: Path | None,
    find: Statement | None,
    replace: Statement,
    insert: Statement,
    on_duplicate: str,
    key: str | None,
) -> int:
    """Run an enqueue on a connection of sqlite3, apsw or SQLAlchemy; their commit or rollback decides."""
    execute = _runner(connection)
    _check_same_file(execute, path)
    found = execute(*find).fetchone() if find is not None else None
    if found is None:
        return _new_id(connection, execute(*insert))
    id, status = int(found[0]), found[1]
    if on_duplicate == "raise" or (on_duplicate == "replace" and status != "pending"):
        raise DuplicateItemError(f"an item with the key {key!r} exists already: {id}", id)
    if on_duplicate == "replace":
        execute(replace[0], [id, *replace[1]])
    return id


def _runner(connection: Any) -> Callable[[str, list[Any]], Any]:
    """How this kind of connection runs plain SQL."""
    if hasattr(connection, "get_bind") and hasattr(connection, "connection"):
        connection = connection.connection()  # a SQLAlchemy session
    if hasattr(connection, "exec_driver_sql"):
        return lambda sql, values: connection.exec_driver_sql(sql, _by_number(values))
    if hasattr(connection, "last_insert_rowid"):
        return lambda sql, values: connection.execute(sql, values)  # apsw
    if hasattr(connection, "execute"):
        return lambda sql, values: connection.execute(sql, _by_number(values))
    raise TypeError(f"connection must be of sqlite3, apsw or SQLAlchemy, not {type(connection).__qualname__}")


def _by_number(values: list[Any]) -> dict[str, Any]:
    """Our parameters have numbers, which sqlite3 takes for names; from Python 3.14 on it refuses a list for them."""
    return {str(number): value for number, value in enumerate(values, 1)}


def _new_id(connection: Any, cursor: Any) -> int:
    if hasattr(connection, "last_insert_rowid"):
        return int(connection.last_insert_rowid())  # apsw
    return int(cursor.lastrowid)


def _check_same_file(execute: Callable[[str, list[Any]], Any], path: Path | None) -> None:
    files = {row[1]: row[2] for row in execute("PRAGMA database_list", []).fetchall()}
    if path is None or not files.get("main") or os.path.realpath(files["main"]) != os.fspath(path):
        theirs = files.get("main") or "memory"
        raise ValueError(f"the connection is open on {theirs!r}, the queue lives in {str(path)!r}")
