"""process: the worker, with a bar when somebody looks and a log when nobody does."""

import io
import json
import logging
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from membox_queue.cli import plain
from membox_queue.cli.loops import loop
from membox_queue.cli.mistakes import FAILED_ITEMS, INTERRUPTED, Mistake
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, AsJson, Db, Name, existing, find_handlers_here
from membox_queue.cli.spans import seconds
from membox_queue.drain import DrainReport
from membox_queue.queue import Queue
from membox_queue.worker import arriving, decoded, load_handler, place_of


def process(
    context: typer.Context,
    handler: Annotated[
        str, typer.Argument(metavar="HANDLER", help="A function, plain or async: package.module:function, or :queue.")
    ],
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    concurrency: Annotated[int, typer.Option(min=1, help="How many items are handled at once.")] = 1,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Bring failed items back first.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until stopped.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Leave after so many items.")] = None,
    linger: Annotated[
        float, typer.Option(parser=seconds, metavar="TIME", help="Stay while something falls due within it.")
    ] = 0.0,
    as_json: AsJson = False,
    settings: Annotated[str, typer.Option(hidden=True, help="Options of the queue, as JSON.")] = "{}",
    announced: Annotated[str | None, typer.Option(hidden=True, help="What this worker was announced as.")] = None,
) -> None:
    """Handle what is due, then leave; with --watch, stay and wait for more."""
    # A log is to tell what failed and why; beside a live bar, which tells that itself, it would be noise.
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=level, stream=PresentStderr())
    if announced is None:
        find_handlers_here()
    else:
        context.with_resource(arriving(db, queue, announced))
    function = loaded(handler)
    file, name, known = place_of(function, said(context, "db", db), said(context, "queue", queue))
    options = {**known, **decoded(json.loads(settings))}
    # A worker that stays may well be there before the first document.
    with Queue(file, name, **options) if watch else existing(Path(file), name, **options) as opened:
        plan: dict[str, Any] = {"concurrency": concurrency, "limit": limit, "progress": True}
        if watch and retry_failed:
            opened.retry_failed()
        elif not watch:
            plan |= {"retry_failed": retry_failed, "linger": linger}
        report = loop(opened, function, stays=watch, **plan)
    if as_json:
        plain.put(asdict(report))
    else:
        typer.echo(in_words(report))
    if report.stopped and not watch:
        raise typer.Exit(INTERRUPTED)
    if report.failed:
        raise typer.Exit(FAILED_ITEMS)


def said(context: typer.Context, name: str, value: Any) -> Any:
    """What was given for an option, on the command line or in the environment; None if it was not."""
    source = context.get_parameter_source(name)
    return None if source is None or source.name == "DEFAULT" else value


class PresentStderr(io.TextIOBase):
    """Whatever stderr is when something is written: a live bar puts itself in its place."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Let it go out."""
        sys.stderr.flush()


def in_words(report: DrainReport) -> str:
    """What a loop did, in a line."""
    if report.refused:
        return "another worker is at it"
    words = f"{report.done} done · {report.failed} failed · {report.postponed} postponed · {report.retried} retried"
    rare = {"given back": report.released, "cancelled": report.cancelled, "lost": report.lost}
    return " · ".join([words, *(f"{number} {what}" for what, number in rare.items() if number)])


def loaded(handler: str) -> Callable[[Any], Any]:
    """Import a handler; what its module raises is told with its place, not with our frames."""
    try:
        return load_handler(handler)
    except ValueError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or '?').name}, line {error.lineno}"
        raise Mistake(f"{handler} cannot be imported: SyntaxError: {error.msg} ({place})") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise Mistake(f"{handler} cannot be imported: {type(error).__name__}: {error} ({place})") from error
