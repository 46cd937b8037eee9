"""process: the worker, with a bar on a terminal and a log elsewhere.

Spawned workers run it, so it needs only the standard library; rich, for the bar, is used if it is installed.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from membox_queue.cli import logs, processes, reloading, screen
from membox_queue.cli.loops import loop, loop_over
from membox_queue.cli.opening import DB_VARIABLE, existing, find_handlers_here, must_have_queue
from membox_queue.cli.spans import seconds
from membox_queue.cli.usage import FAILED_ITEMS, INTERRUPTED, UsageError, errors_in_one_line
from membox_queue.loops.report import DrainReport
from membox_queue.queue import Queue
from membox_queue.workers.names import load_handler
from membox_queue.workers.spawn import announced, settings_from
from membox_queue.workers.targets import Served, serve

T = TypeVar("T")

SUMMARY = "Handle what is due, then exit; with --watch, wait for more."
HANDLERS = """What to serve: a function, plain or async (package.module:function, or queue=package.module:function),
    a queue with all its registered handlers (package.module:queue), or all those of a module (package.module)."""


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command with these arguments, and return its exit code; `program` is what was typed before them."""
    parser = options(program)
    given = parser.parse_args(arguments)
    if given.limit and given.processes:
        parser.error("--limit is for one process; leave out --processes")
    if given.limit and given.reload:
        parser.error("--reload runs until stopped; leave out --limit")
    given.watch = given.watch or given.reload
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
    add("handlers", metavar="HANDLER", nargs="+", help=HANDLERS)
    where = f"The SQLite file; default: that of registered handlers, {DB_VARIABLE}, memory.db."
    add("--db", type=Path, default=os.environ.get(DB_VARIABLE) or None, metavar="FILE", help=where)
    add("--queue", metavar="NAME", help="The queue of a function; of several handlers, the only one to serve.")
    add("--concurrency", type=one_or_more, default=1, metavar="N", help="How many items to handle at once.")
    add("--processes", type=one_or_more, metavar="N", help="Start N processes, each with that concurrency.")
    add("--retry-failed", action="store_true", help="First return failed items to pending.")
    add("--watch", action="store_true", help="Run until stopped. Of several processes, replace those that die.")
    add("--reload", action="store_true", help="For development: --watch, and restart when the code changes.")
    add("--limit", type=one_or_more, metavar="N", help="Exit after this number of items.")
    add(
        "--linger", type=seconds, default=0.0, metavar="TIME", help="Wait while something becomes due within this time."
    )
    add("--log-level", choices=logs.LEVELS, help="Default: info; warning at a terminal.")
    add("--log-format", choices=logs.FORMATS, default="text", help="json: one object a line, on stderr.")
    add("--json", action="store_true", help="Write only JSON.")
    # What `Queue.spawn_worker` hands over: the options of the queue as JSON, and what the worker was announced as.
    add("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    add("--announced", help=argparse.SUPPRESS)
    # What the parent of several processes hands over: where to write the report.
    add("--report", type=Path, help=argparse.SUPPRESS)
    return parser


def one_or_more(typed: str) -> int:
    """Read a number of items."""
    if not (typed.isdecimal() and int(typed) >= 1):
        raise argparse.ArgumentTypeError(f"{typed!r} is not a number of at least 1")
    return int(typed)


def process(given: argparse.Namespace) -> int:
    """Run the loop, print what it did, and return the exit code."""
    logs.configure(given.log_level, given.log_format)
    if given.report is not None:
        return processes.as_child(given.report, lambda: run_reloading(given) if given.reload else run(given))
    if given.processes or given.reload:
        report, code = processes.run(child_command(given), given.processes or 1, given.retry_failed, given.watch)
    else:
        report, code = run(given), None
    if given.json:
        screen.write_json(asdict(report))
    else:
        print(in_words(report))
    if code is not None:
        return code
    if report.stopped and not given.watch:
        return INTERRUPTED
    return FAILED_ITEMS if report.failed else 0


def child_command(given: argparse.Namespace) -> list[str]:
    """Return the command of each of several processes."""
    named = {
        "--db": given.db,
        "--queue": given.queue,
        "--concurrency": given.concurrency,
        "--linger": given.linger,
        "--log-level": given.log_level,
        "--log-format": given.log_format,
    }
    flags = {"--watch": given.watch, "--reload": given.reload}
    return [
        *(sys.executable, "-m", "membox_queue", "process", *given.handlers),
        *(part for name, value in named.items() if value is not None for part in (name, str(value))),
        *(name for name, value in flags.items() if value),
    ]


def run_reloading(given: argparse.Namespace) -> DrainReport | int:
    """Run the loop until it is stopped or the code changes; then return the code that asks for a new process."""
    watch = reloading.CodeWatch()
    try:
        served = found(given)
    except (UsageError, ValueError) as error:
        watch.add_files_of(error)
        if not watch.files():
            raise
        print(f"membox-queue: {error}; waiting for a change", file=sys.stderr)
        watch.wait()
        return reloading.AGAIN
    with watch.watching():
        report = run_served(served, given)
    if watch.has_changed:
        processes.write_report(given.report, report)
        return reloading.AGAIN
    return report


def run(given: argparse.Namespace) -> DrainReport:
    """Import the handlers and run their loop."""
    with contextlib.ExitStack() as resources:
        if given.announced is not None:
            resources.enter_context(announced(given.db, given.queue, given.announced))
        return run_served(found(given), given)


def found(given: argparse.Namespace) -> list[Served]:
    """Return the queues to serve, with the settings that were handed over."""
    if given.announced is None:
        find_handlers_here()
    served = loaded(
        ", ".join(given.handlers),
        lambda: serve(given.handlers, given.db, given.queue, is_announced=given.announced is not None),
    )
    handed_over = settings_from(given.settings)
    return [
        dataclasses.replace(one, options={**one.options, **handed_over}) if one.name == given.queue else one
        for one in served
    ]


def run_served(served: list[Served], given: argparse.Namespace) -> DrainReport:
    """Open the queues, and run the loop that was asked for."""
    is_child = given.report is not None
    if is_child:
        processes.tell_begun(given.report)
    plan: dict[str, Any] = {"concurrency": given.concurrency, "limit": given.limit, "progress": not is_child}
    if not given.watch:
        plan["linger"] = given.linger
    if len(served) > 1:
        if not given.watch:
            must_have_queue(Path(served[0].file))
        return loop_over(served, stays=given.watch, retry_failed=given.retry_failed, **plan)
    (one,) = served
    # A worker that runs until stopped may start before the first item is enqueued.
    opened = Queue if given.watch else existing
    with opened(Path(one.file), one.name, **one.options) as queue:
        if given.watch and given.retry_failed:
            queue.retry_failed()
        elif not given.watch:
            plan |= {"retry_failed": given.retry_failed, "exclusive": not is_child}
        return loop(queue, one.handler, stays=given.watch, **plan)


def in_words(report: DrainReport) -> str:
    """Return what a loop did, in one line."""
    if report.refused:
        return "another worker is running"
    words = f"{report.done} done · {report.failed} failed · {report.postponed} postponed · {report.retried} retried"
    rare = {"released": report.released, "cancelled": report.cancelled, "lost": report.lost}
    rare["without a stored result"] = report.unstored
    return " · ".join([words, *(f"{number} {what}" for what, number in rare.items() if number)])


def loaded_handler(handler: str) -> Callable[[Any], Any]:
    """Import one handler."""
    return loaded(handler, lambda: load_handler(handler))


def loaded(named: str, load: Callable[[], T]) -> T:
    """Import handlers; an error in their module is reported with its file and line."""
    try:
        return load()
    except ValueError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or '?').name}, line {error.lineno}"
        raise UsageError(f"{named} cannot be imported: SyntaxError: {error.msg} ({place})") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}, line {last.lineno}"
        raise UsageError(f"{named} cannot be imported: {type(error).__name__}: {error} ({place})") from error
