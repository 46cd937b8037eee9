"""Run a verb in the caller's own transaction: the caller's library runs the statements that native code decides on."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.connections import apsw, django, sqlalchemy, sqlite3

if TYPE_CHECKING:
    from pathlib import Path


def run(connection: Any, path: Path | None, steps: _native.Enlistment) -> Any:
    """Run a verb on a connection of sqlite3, apsw, SQLAlchemy or Django; the caller commits or rolls back.

    Its changes are made all or none, in a savepoint. If the library begins transactions by itself and none is open yet,
    one is begun. A connection that commits each statement by itself is refused then.
    """
    link = link_to(connection)
    check_same_file(link, steps.location, path)
    is_begun = link.is_begun
    if not is_begun and not link.begins_by_itself:
        raise ValueError(
            "the connection has no open transaction, and each statement would be committed by itself; begin a "
            "transaction first, or leave connection out"
        )
    return drive(link, steps, is_inside=is_begun)


def drive(link: sqlite3.Link, steps: _native.Enlistment, *, is_inside: bool = True) -> Any:
    """Run the statements of a verb, and return its result."""
    step = steps.begin(is_inside)
    while isinstance(step, _native.Statement):
        try:
            rows = link.run(step)
        except Exception as error:
            step = steps.failed(error)
        else:
            step = steps.next(rows)
    return step


def link_to(connection: Any) -> sqlite3.Link:
    """Return what runs plain SQL on this connection."""
    if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
        raise TypeError(
            f"{type(connection).__qualname__} is asynchronous; AsyncQueue takes the AsyncConnection and AsyncSession "
            f"of SQLAlchemy, and connections of aiosqlite"
        )
    if django.accepts(connection):
        return django.Link(connection)
    if sqlalchemy.accepts(connection):
        return sqlalchemy.Link(connection)
    if apsw.accepts(connection):
        return apsw.Link(connection)
    if sqlite3.accepts(connection):
        return sqlite3.Link(connection)
    kinds = "sqlite3, apsw, SQLAlchemy or Django"
    raise TypeError(f"connection must be of {kinds}, not {type(connection).__qualname__}")


def check_same_file(link: sqlite3.Link, location: _native.Statement, path: Path | None) -> None:
    """Raise ValueError if the connection is open on another file."""
    if path is None:
        raise ValueError(
            "a queue in memory belongs to its own object, and no other connection can write to it; use a file for "
            "connection=…"
        )
    rows = link.run(location)
    file = os.fsdecode(bytes(rows[0][0] or b"")) if rows else ""
    if not file or os.path.realpath(file) != os.fspath(path):
        raise ValueError(f"the connection is open on {file or 'memory'!r}, the queue lives in {str(path)!r}")
