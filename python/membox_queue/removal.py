"""Takes the queue out of a file."""

from __future__ import annotations

import os
from typing import TypedDict

from membox_queue import _native
from membox_queue.errors import StorageError


class Removal(TypedDict):
    """What `remove` took out of a file: `objects` are the schema objects, such as `table ingest_queue`."""

    items: int
    unfinished: int
    objects: list[str]


def remove(path: str | os.PathLike[str], *, discard: bool = False, dry_run: bool = False) -> Removal:
    """Remove the queue from a file: all its queues, items, tables, indexes, views and triggers.

    Other tables are not touched. In a file that membox made, its table `ingest_queue` and its rows stay.

    - `discard`: also remove unfinished items. By default they are a reason to refuse.
    - `dry_run`: change nothing, and return what would be removed.

    Returns a dict: how many `items` were removed, how many of them were `unfinished`, and the schema `objects`.

    Raises QueueBusyError while this process has the queue open, or a worker of any process lives; ValueError if there
    are unfinished items, or no queue; StorageError if there is no such file, or a foreign key, trigger or view of the
    application uses a table of the queue. Then nothing is removed.
    """
    if os.fspath(path) != ":memory:" and not os.path.exists(path):
        raise StorageError(f"{os.fspath(path)!r}: there is no such file, and nothing was removed")
    items, unfinished, objects = _native.remove(path, discard, dry_run)
    return {"items": items, "unfinished": unfinished, "objects": objects}
