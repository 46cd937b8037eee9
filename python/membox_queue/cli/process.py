"""process: the worker, with a bar on a terminal and a log elsewhere.

Spawned workers run it, so it needs only the standard library; rich, for the bar, is used if it is installed.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from membox_queue.cli import screen
from membox_queue.cli.loops import loop
from membox_queue.cli.opening import DB_VARIABLE, existing, find_handlers_here
from membox_queue.cli.spans import seconds
from membox_queue.cli.usage import FAILED_ITEMS, INTERRUPTED, UsageError, errors_in_one_line
from membox_queue.loops.report import DrainReport
from membox_queue.queue import Queue
from membox_queue.workers.names import load_handler, queue_of
from membox_queue.workers.spawn import announced, settings_from

SUMMARY = "Handle what is due, then exit; with --watch, wait for more."


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command with these arguments, and return its exit code; `program` is what was typed before them."""
    given = options(program).parse_args(arguments)
    with errors_in_one_line():
        try:
            code = process(given)
            sys.stdout.flush()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BrokenPipeError:
            # The reader is gone; Python must not flush to it again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    return code


def options(program: str) -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(program, description=SUMMARY, allow_abbrev=False)
    add = parser.add_argument
    add("handler", metavar="HANDLER", help="A function, plain or async: package.module:function, or :queue.")
    where = f"The SQLite file; default: {DB_VARIABLE}, else memory.db."
    add("--db", type=Path, default=os.environ.get(DB_VARIABLE) or None, metavar="FILE", help=where)
    add("--queue", metavar="NAME", help="The name of the queue.")
    add("--concurrency", type=one_or_more, default=1, metavar="N", help="How many items to handle at once.")
    add("--retry-failed", action="store_true", help="First return failed items to pending.")
    add("--watch", action="store_true", help="Run until stopped.")
    add("--limit", type=one_or_more, metavar="N", help="Exit after this number of items.")
    add(
        "--linger", type=seconds, default=0.0, metavar="TIME", help="Wait while something becomes due within this time."
    )
    add("--json", action="store_true", help="Write only JSON.")
    # What `Queue.spawn_worker` hands over: the options of the queue as JSON, and what the worker was announced as.
    add("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    add("--announced", help=argparse.SUPPRESS)
    return parser


def one_or_more(typed: str) -> int:
    """Read a number of items."""
    if not (typed.isdecimal() and int(typed) >= 1):
        raise argparse.ArgumentTypeError(f"{typed!r} is not a number of at least 1")
    return int(typed)


def process(given: argparse.Namespace) -> int:
    """Run the loop, print what it did, and return the exit code."""
    # A log says what failed and why. The live bar shows that itself, so there only warnings are logged.
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=level, stream=PresentStderr())
    with contextlib.ExitStack() as resources:
        if given.announced is None:
            find_handlers_here()
        else:
            resources.enter_context(announced(given.db, given.queue, given.announced))
        report = run(loaded(given.handler), given)
    if given.json:
        screen.write_json(asdict(report))
    else:
        print(in_words(report))
    if report.stopped and not given.watch:
        return INTERRUPTED
    return FAILED_ITEMS if report.failed else 0


def run(handler: Callable[[Any], Any], given: argparse.Namespace) -> DrainReport:
    """Open the queue that the handler serves, and run the loop that was asked for."""
    file, name, known = queue_of(handler, given.db, given.queue)
    settings = {**known, **settings_from(given.settings)}
    # A worker that runs until stopped may start before the first item is enqueued.
    with Queue(file, name, **settings) if given.watch else existing(Path(file), name, **settings) as queue:
        plan: dict[str, Any] = {"concurrency": given.concurrency, "limit": given.limit, "progress": True}
        if given.watch and given.retry_failed:
            queue.retry_failed()
        elif not given.watch:
            plan |= {"retry_failed": given.retry_failed, "linger": given.linger}
        return loop(queue, handler, stays=given.watch, **plan)


class PresentStderr(io.TextIOBase):
    """The stderr of the moment of writing: a live bar replaces sys.stderr."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stderr.flush()


def in_words(report: DrainReport) -> str:
    """Return what a loop did, in one line."""
    if report.refused:
        return "another worker is running"
    words = f"{report.done} done · {report.failed} failed · {report.postponed} postponed · {report.retried} retried"
    rare = {"released": report.released, "cancelled": report.cancelled, "lost": report.lost}
    rare["without a stored result"] = report.unstored
    return " · ".join([words, *(f"{number} {what}" for what, number in rare.items() if number)])


def loaded(handler: str) -> Callable[[Any], Any]:
    """Import a handler; an error in its module is reported with its file and line."""
    try:
        return load_handler(handler)
    except ValueError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or '?').name}, line {error.lineno}"
        raise UsageError(f"{handler} cannot be imported: SyntaxError: {error.msg} ({place})") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise UsageError(f"{handler} cannot be imported: {type(error).__name__}: {error} ({place})") from error
