"""The command line: for now, the worker process."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Annotated

import typer

from membox_queue.errors import QueueError
from membox_queue.queue import Queue
from membox_queue.worker import decoded, load_handler

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """A durable work queue inside an SQLite file."""


@app.command()
def process(
    handler: Annotated[str, typer.Argument(help="What handles an item: package.module:function.")],
    db: Annotated[str, typer.Option(envvar="MEMBOX_QUEUE_DB", help="The SQLite file.")] = "memory.db",
    queue: Annotated[str, typer.Option(help="The queue's name.")] = "ingest",
    concurrency: Annotated[int, typer.Option(help="How many items are handled at once.")] = 1,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Bring failed items back first.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until stopped.")] = False,
    linger: Annotated[float, typer.Option(help="Stay while something falls due within so many seconds.")] = 0.0,
    settings: Annotated[str, typer.Option(hidden=True, help="Options of the queue, as JSON.")] = "{}",
) -> None:
    """Handle what is due, then leave; with --watch, stay and wait for more."""
    # A log is to tell what failed and why; beside a live bar that would be noise.
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=level)
    # The handler's module may lie where the command is given.
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = load_handler(handler)
        with Queue(db, queue, **decoded(json.loads(settings))) as opened:
            if watch:
                report = opened.work(function, concurrency=concurrency, progress=True)
            else:
                report = opened.drain(
                    function, concurrency=concurrency, retry_failed=retry_failed, linger=linger, progress=True
                )
    except (QueueError, ValueError) as error:
        typer.echo(f"membox-queue: {error}", err=True)
        sys.exit(1)
    if report.refused:
        typer.echo("another worker is at it")
    else:
        typer.echo(
            f"{report.done} done · {report.failed} failed · {report.postponed} postponed · {report.retried} retried"
        )
