"""retry, replay, run-now, cancel, answer, delete, purge, prune, pause, resume: changing items and queues by hand."""

import json
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from membox_queue.cli import screen
from membox_queue.cli.ingest import named
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing, known
from membox_queue.cli.options import AsJson, Db, Name, Yes, confirm, time_span
from membox_queue.cli.usage import UsageError
from membox_queue.queue import Queue
from membox_queue.terminal_text import duration, number

Ids = Annotated[list[int], typer.Argument(metavar="ID", help="The ids of the items.")]
Tree = Annotated[bool, typer.Option("--tree", help="Also what the items wait for and what they have made.")]


def retry(
    ids: Annotated[list[int] | None, typer.Argument(metavar="ID", help="The ids of the items.")] = None,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    everything: Annotated[bool, typer.Option("--all", help="Every failed item.")] = False,
    tree: Annotated[bool, typer.Option("--tree", help="Also those that the items wait for.")] = False,
    as_json: AsJson = False,
) -> None:
    """Return failed or cancelled items to pending, at their original position, with the retry count reset."""
    if bool(ids) == everything:
        raise UsageError("name the items, or give --all for every failed one")
    with known(db, queue) as opened:
        if ids:
            otherwise = (
                "is neither failed nor cancelled, its key is in use again, or it waits for one that failed (--tree)"
            )
            each(opened, ids, partial(opened.retry, tree=tree), "returned to pending", otherwise, as_json)
            return
        returned, kept = opened.retry(status="failed"), opened.counts()["failed"]
    left = f"; {kept:,} not returned, because their key is in use again" if kept else ""
    words = f"{number(returned, 'item')} returned to pending{left}"
    tell(words, {"queue": queue, "count": returned, "unchanged_count": kept}, as_json)


def replay(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Enqueue copies of items, whatever their status."""
    with known(db, queue) as opened:
        copies = {id: opened.replay(id) for id in dict.fromkeys(ids)}
        made = [copy for copy in copies.values() if copy is not None]
        otherwise = "does not exist, or its content was dropped"
        words = f"enqueued again as {named(made)}" if made else ""
        report(opened, ids, [id for id in ids if copies[id]], words, otherwise, as_json, copies=made)


def run_now(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Make delayed items due now, including those that wait for a retry."""
    with known(db, queue) as opened:
        each(opened, ids, opened.run_now, "due now", "does not wait for a time", as_json)


def cancel(
    ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, tree: Tree = False, as_json: AsJson = False
) -> None:
    """Cancel unfinished items; a running handler can check item.cancelled."""
    with known(db, queue) as opened:
        otherwise = "is finished, already cancelled, or does not exist"
        each(opened, ids, partial(opened.cancel, tree=tree), "cancelled", otherwise, as_json)


def delete(
    ids: Ids,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    tree: Tree = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove items, whatever their status."""
    with known(db, queue) as opened:
        confirm(f"Remove {named(ids)}{' with all that they wait for' if tree else ''}?", yes)
        each(opened, ids, partial(opened.delete, tree=tree), "removed", "does not exist", as_json)


def answer(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ID [JSON]", help="The item, and its result; with --key only that.")
    ] = None,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="Let the item fail with this error.")] = None,
    key: Annotated[str | None, typer.Option(help="The item that has this key.")] = None,
    key_ttl: Annotated[
        float | None,
        typer.Option(parser=time_span, metavar="TIME", help="How long to keep an answer that comes first."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """End an item without a worker: done with a result, or failed with an error."""
    given = list(arguments or [])
    if key is None and not given:
        raise UsageError("name the item by its id, or by --key")
    about: dict[str, Any] = {"key": key, "key_ttl": key_ttl} if key is not None else {"id": number_of(given.pop(0))}
    if len(given) > 1 or (given and error is not None):
        raise UsageError("give one result as JSON, or an --error")
    what = f"item {about['id']}" if key is None else f"the item with the key {key!r}"
    with known(db, queue) as opened:
        if not opened.answer(**about, result=json_value(given[0]) if given else None, error=error):
            raise UsageError(f"{what} of {queue} is done, cancelled, or does not exist; see: membox-queue list")
    tell(f"{what} answered", {"queue": queue, **about, "answered": True}, as_json)


def number_of(typed: str) -> int:
    """Read an id."""
    try:
        return int(typed)
    except ValueError:
        raise UsageError(f"{typed!r} is no id; the result comes after the id") from None


def json_value(typed: str) -> Any:
    """Read a result."""
    try:
        return json.loads(typed)
    except ValueError:
        raise UsageError(f"{typed!r} is not JSON; a text needs quotes: '\"yes\"'") from None


def purge(
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    status: Annotated[str, typer.Option(help="pending, processing, done, failed or cancelled.")] = "failed",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove all items of one status."""
    with known(db, queue) as opened:
        counts = opened.counts()
        if status not in counts:
            raise UsageError(f"there is no status {status!r}; it is one of {', '.join(counts)}")
        if counts[status]:
            confirm(f"Remove {number(counts[status], f'{status} item')} from {opened.name}?", yes)
        removed = opened.purge(status)  # type: ignore[arg-type]
    words = f"{number(removed, f'{status} item')} removed"
    tell(words, {"queue": queue, "status": status, "count": removed}, as_json)


def prune(
    older_than: Annotated[
        float, typer.Option(parser=time_span, metavar="TIME", help="The minimum time since the end: 12h, 7d.")
    ],
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    status: Annotated[str, typer.Option(help="done, failed or cancelled.")] = "done",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove items that ended longer ago than TIME."""
    if status not in ("done", "failed", "cancelled"):
        raise UsageError(f"prune removes what has ended: done, failed or cancelled, not {status!r}")
    with known(db, queue) as opened:
        confirm(f"Remove {status} items of {opened.name} that ended more than {duration(older_than)} ago?", yes)
        removed = opened.prune(older_than, status=status)  # type: ignore[arg-type]
    words = f"{number(removed, f'{status} item')} removed"
    tell(words, {"queue": queue, "status": status, "count": removed}, as_json)


def pause(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Stop all claims from the queue, in every process, until resume."""
    # A queue may be paused before its first item comes.
    with existing(db, queue) as opened:
        changed = opened.pause()
    words = f"{queue} is paused" if changed else f"{queue} was paused already"
    tell(words, {"queue": queue, "paused": True, "changed": changed}, as_json)


def resume(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """End a pause."""
    with known(db, queue) as opened:
        changed = opened.resume()
    words = f"{queue} is resumed" if changed else f"{queue} was not paused"
    tell(words, {"queue": queue, "paused": False, "changed": changed}, as_json)


def tell(words: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print what was done, in words or as JSON."""
    if as_json:
        screen.write_json(facts)
    elif words:
        typer.echo(words)


def each(queue: Queue, ids: list[int], verb: Callable[[int], Any], done: str, otherwise: str, as_json: bool) -> None:
    """Apply a verb to each item, and report which ones it changed."""
    changed = [id for id in ids if verb(id)]
    report(queue, ids, changed, f"{named(changed)} {done}" if changed else "", otherwise, as_json)


def report(
    queue: Queue, ids: list[int], changed: list[int], words: str, otherwise: str, as_json: bool, **more: Any
) -> None:
    """Print which items were changed. Raise UsageError that names the others."""
    left = [id for id in ids if id not in changed]
    facts = {"queue": queue.name, "count": len(changed), "ids": changed, "unchanged": left, **more}
    tell(words, facts, as_json)
    if left:
        named_items = ", ".join(f"item {id}" for id in left)
        raise UsageError(f"{named_items} of {queue.name} {otherwise}; see: membox-queue list")
