"""Which queue a command is about, and how it is opened: only commands that put something in may make a file."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from membox_queue import _native
from membox_queue.cli.mistakes import Mistake
from membox_queue.queue import Queue

Db = Annotated[
    Path, typer.Option("--db", envvar="MEMBOX_QUEUE_DB", metavar="FILE", help="The SQLite file.", show_envvar=False)
]
Name = Annotated[str, typer.Option("--queue", metavar="NAME", help="The queue's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, and nothing else.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

DEFAULT_DB = Path("memory.db")
DEFAULT_NAME = "ingest"


def must_exist(db: Path) -> None:
    """Refuse a file that is not there."""
    if not db.exists():
        raise Mistake(f"there is no file {db}; name the right one with --db or MEMBOX_QUEUE_DB")


def existing(db: Path, name: str, **options: Any) -> Queue:
    """Open a queue that is there; a file that is not there, or that has no queue, is left as it is."""
    must_exist(db)
    if not _native.has_queue(db):
        raise Mistake(
            f"{db} has no queue in it, and was not changed; name another file with --db or MEMBOX_QUEUE_DB, or put "
            "something in with: membox-queue ingest"
        )
    return Queue(db, name, **options)


def find_handlers_here() -> None:
    """Let the modules beside the command be found, as `python -m` does."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())


def confirm(question: str, yes: bool) -> None:
    """Ask before something is removed; without a terminal to ask at, refuse."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Mistake(f"{question} There is no terminal to ask at; say --yes to do it")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
