"""compact, backup, remove, doctor and demo: commands about the file, not about items."""

from pathlib import Path
from typing import Annotated

import typer

from membox_queue.cli import health, screen
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing, must_exist
from membox_queue.cli.options import AsJson, Db, Name, Yes, confirm
from membox_queue.removal import remove as remove_queue
from membox_queue.terminal_text import number, size
from membox_queue.wire.health import examine, verdict


def compact(db: Db = DEFAULT_DB, as_json: AsJson = False) -> None:
    """Rewrite the file to free the space of removed rows."""
    with existing(db, DEFAULT_NAME) as opened:
        before = db.stat().st_size
        opened.compact()
    after = db.stat().st_size
    if as_json:
        screen.write_json({"file": str(db), "bytes_before": before, "bytes": after})
    else:
        typer.echo(f"{db}: {size(before)} → {size(after)}")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; it must not exist yet.")],
    db: Db = DEFAULT_DB,
    as_json: AsJson = False,
) -> None:
    """Copy the file as it is now, while other processes write to it."""
    with existing(db, DEFAULT_NAME) as opened:
        opened.backup(target)
    copied = target.stat().st_size
    if as_json:
        screen.write_json({"file": str(db), "copy": str(target), "bytes": copied})
    else:
        typer.echo(f"{db} → {target}, {size(copied)}")


def remove(db: Db = DEFAULT_DB, yes: Yes = False, as_json: AsJson = False) -> None:
    """Take all queues out of the file: their items, tables, indexes, views and triggers. Other tables stay."""
    must_exist(db)
    found = remove_queue(db, dry_run=True)
    unfinished = f", {found['unfinished']:,} of them unfinished" if found["unfinished"] else ""
    confirm(f"Remove the queue from {db}, with {number(found['items'], 'item')}{unfinished}?", yes)
    # What was enqueued since the question was asked is not part of the answer.
    removed = remove_queue(db, discard=yes or found["unfinished"] > 0)
    if as_json:
        screen.write_json({"file": str(db), **removed})
    else:
        what = f"{number(removed['items'], 'item')} and {number(len(removed['objects']), 'schema object')}"
        typer.echo(f"{db}: {what} removed")


def doctor(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Check the file and the queue, and explain what is wrong; the exit code is 1 if something is."""
    must_exist(db)
    findings = examine(db, lambda: existing(db, queue))
    summary = verdict(findings)
    if as_json:
        screen.write_json(
            {"file": str(db), "queue": queue, **summary, "findings": [vars(finding) for finding in findings]}
        )
    else:
        screen.show(*health.lines(findings), "", screen.text(summary["verdict"], "bold"))
    if not summary["healthy"]:
        raise typer.Exit(1)


def demo(
    keep: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the file of the demo.")] = None,
) -> None:
    """Accept documents, kill the worker in the middle of one, and lose nothing: about eight seconds."""
    from membox_queue import demo

    raise typer.Exit(demo.main(keep))
