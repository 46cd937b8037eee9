"""retry, replay, run-now, cancel, delete, purge, prune, pause and resume: administration of items and queues."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from membox_queue.cli.ingest import named
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing
from membox_queue.cli.options import Db, Name, Yes, confirm, time_span
from membox_queue.cli.usage import UsageError
from membox_queue.queue import Queue
from membox_queue.terminal_text import duration, number

Ids = Annotated[list[int], typer.Argument(metavar="ID", help="The ids of the items.")]


def retry(
    ids: Annotated[list[int] | None, typer.Argument(metavar="ID", help="The ids of the items.")] = None,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    everything: Annotated[bool, typer.Option("--all", help="Every failed item.")] = False,
) -> None:
    """Return failed or cancelled items to pending, at their original position, with the retry count reset."""
    if bool(ids) == everything:
        raise UsageError("name the items, or give --all for every failed one")
    with existing(db, queue) as opened:
        if ids:
            each(
                opened,
                ids,
                opened.retry,
                "returned to pending",
                "is neither failed nor cancelled, or its key is in use again",
            )
            return
        returned, kept = opened.retry(status="failed"), opened.counts()["failed"]
    left = f"; {kept:,} not returned, because their key is in use again" if kept else ""
    typer.echo(f"{number(returned, 'item')} returned to pending{left}")


def replay(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME) -> None:
    """Enqueue copies of items, whatever their status."""
    with existing(db, queue) as opened:
        copies: list[int] = []
        each(opened, ids, lambda id: keep(copies, opened.replay(id)), "", "does not exist, or its content was dropped")
        typer.echo(f"enqueued again as {named(copies)}")


def keep(copies: list[int], copy: int | None) -> bool:
    """Add a copy to the list. Return whether there is one."""
    copies += [] if copy is None else [copy]
    return copy is not None


def run_now(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME) -> None:
    """Make delayed items due now, including those that wait for a retry."""
    with existing(db, queue) as opened:
        each(opened, ids, opened.run_now, "due now", "does not wait for a time")


def cancel(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME) -> None:
    """Cancel unfinished items; a running handler can check item.cancelled."""
    with existing(db, queue) as opened:
        each(opened, ids, opened.cancel, "cancelled", "is finished, already cancelled, or does not exist")


def delete(ids: Ids, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, yes: Yes = False) -> None:
    """Remove items, whatever their status."""
    with existing(db, queue) as opened:
        confirm(f"Remove {named(ids)}?", yes)
        each(opened, ids, opened.delete, "removed", "does not exist")


def purge(
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    status: Annotated[str, typer.Option(help="pending, processing, done, failed or cancelled.")] = "failed",
    yes: Yes = False,
) -> None:
    """Remove all items of one status."""
    with existing(db, queue) as opened:
        counts = opened.counts()
        if status not in counts:
            raise UsageError(f"there is no status {status!r}; it is one of {', '.join(counts)}")
        if counts[status]:
            confirm(f"Remove {number(counts[status], f'{status} item')} from {opened.name}?", yes)
        typer.echo(f"{number(opened.purge(status), f'{status} item')} removed")  # type: ignore[arg-type]


def prune(
    older_than: Annotated[
        float, typer.Option(parser=time_span, metavar="TIME", help="The minimum time since the end: 12h, 7d.")
    ],
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    status: Annotated[str, typer.Option(help="done, failed or cancelled.")] = "done",
    yes: Yes = False,
) -> None:
    """Remove items that ended longer ago than TIME."""
    if status not in ("done", "failed", "cancelled"):
        raise UsageError(f"prune removes what has ended: done, failed or cancelled, not {status!r}")
    with existing(db, queue) as opened:
        confirm(f"Remove {status} items of {opened.name} that ended more than {duration(older_than)} ago?", yes)
        removed = opened.prune(older_than, status=status)  # type: ignore[arg-type]
    typer.echo(f"{number(removed, f'{status} item')} removed")


def pause(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME) -> None:
    """Stop all claims from the queue, in every process, until resume."""
    with existing(db, queue) as opened:
        typer.echo(f"{opened.name} is paused" if opened.pause() else f"{opened.name} was paused already")


def resume(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME) -> None:
    """End a pause."""
    with existing(db, queue) as opened:
        typer.echo(f"{opened.name} is resumed" if opened.resume() else f"{opened.name} was not paused")


def each(queue: Queue, ids: list[int], verb: Callable[[int], Any], done: str, otherwise: str) -> None:
    """Apply a verb to each item. Raise UsageError that names the items it did not apply to."""
    changed = [id for id in ids if verb(id)]
    if changed and done:
        typer.echo(f"{named(changed)} {done}")
    left = [id for id in ids if id not in changed]
    if left:
        named_items = ", ".join(f"item {id}" for id in left)
        raise UsageError(f"{named_items} of {queue.name} {otherwise}; see: membox-queue list")
