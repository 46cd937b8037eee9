"""compact, backup, doctor and demo: commands about the file, not about items."""

from pathlib import Path
from typing import Annotated

import typer

from membox_queue.cli import health, screen
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing, must_exist
from membox_queue.cli.options import AsJson, Db, Name
from membox_queue.terminal_text import size
from membox_queue.wire.health import examine, verdict


def compact(db: Db = DEFAULT_DB) -> None:
    """Rewrite the file to free the space of removed rows."""
    with existing(db, DEFAULT_NAME) as opened:
        before = db.stat().st_size
        opened.compact()
    typer.echo(f"{db}: {size(before)} → {size(db.stat().st_size)}")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; it must not exist yet.")],
    db: Db = DEFAULT_DB,
) -> None:
    """Copy the file as it is now, while other processes write to it."""
    with existing(db, DEFAULT_NAME) as opened:
        opened.backup(target)
    typer.echo(f"{db} → {target}, {size(target.stat().st_size)}")


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
