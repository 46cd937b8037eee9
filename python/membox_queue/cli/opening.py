"""Which queue a command is about, and how it is opened: only commands that put something in may make a file."""

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
    """Refuse a file that is not there."""
    if not db.exists():
        raise UsageError(f"there is no file {db}; name the right one with --db or MEMBOX_QUEUE_DB")


def existing(db: Path, name: str, **options: Any) -> Queue:
    """Open a queue that is there; a file that is not there, or that has no queue, is left as it is."""
    must_exist(db)
    if not has_queue(db):
        raise UsageError(
            f"{db} has no queue in it, and was not changed; name another file with --db or MEMBOX_QUEUE_DB, or "
            "enqueue something first"
        )
    return Queue(db, name, **options)


def find_handlers_here() -> None:
    """Let the modules beside the command be found, as `python -m` does."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
