"""Opens the queue of a command; only commands that enqueue may create a file."""

import os
import sys
from pathlib import Path
from typing import Any

from membox_queue.cli.usage import UsageError
from membox_queue.queue import Queue, has_queue

DEFAULT_DB = Path("memory.db")
DEFAULT_NAME = "ingest"
DB_VARIABLE = "MEMBOX_QUEUE_DB"


def must_exist(db: Path) -> None:
    """Raise UsageError if there is no such file."""
    if not db.exists():
        raise UsageError(f"there is no file {db}; name the right one with --db or MEMBOX_QUEUE_DB")


def existing(db: Path, name: str, **options: Any) -> Queue:
    """Open an existing queue. Raise UsageError, and create nothing, if there is none."""
    must_have_queue(db)
    return Queue(db, name, **options)


def must_have_queue(db: Path) -> None:
    """Raise UsageError if there is no such file, or no queue in it."""
    must_exist(db)
    if not has_queue(db):
        raise UsageError(
            f"{db} has no queue in it, and was not changed; name another file with --db or MEMBOX_QUEUE_DB, or "
            "enqueue something first"
        )


def known(db: Path, name: str, **options: Any) -> Queue:
    """Open a queue that has been used. Raise UsageError if the file has no queue of that name.

    The default queue is always known. Another one is known by its items, its schedules, a pause or a worker.
    """
    queue = existing(db, name, **options)
    names = list(queue.queues())
    if name == DEFAULT_NAME or name in names or queue.schedules() or queue.paused or queue.worker_is_alive():
        return queue
    queue.close()
    raise UsageError(f"there is no queue {name!r} in {db}; it has: {', '.join(names) or 'no items in any queue'}")


def find_handlers_here() -> None:
    """Let modules of the working directory be imported, as `python -m` does."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
