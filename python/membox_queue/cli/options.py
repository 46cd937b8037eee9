"""Options that several commands share."""

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Annotated

import typer

from membox_queue.cli.opening import DB_VARIABLE
from membox_queue.cli.spans import seconds
from membox_queue.cli.usage import UsageError

Db = Annotated[
    Path, typer.Option("--db", envvar=DB_VARIABLE, metavar="FILE", help="The SQLite file.", show_envvar=False)
]
Name = Annotated[str, typer.Option("--queue", metavar="NAME", help="The name of the queue.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write only JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def time_span(typed: str | float) -> float:
    """Read a time span; typer shows the message of its own exception only."""
    try:
        return seconds(typed)
    except ArgumentTypeError as error:
        raise typer.BadParameter(str(error)) from None


def confirm(question: str, yes: bool) -> None:
    """Ask before something is removed; without a terminal to ask at, refuse."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask at; give --yes to do it")
    if not typer.confirm(question, err=True):
        raise typer.Exit(1)
