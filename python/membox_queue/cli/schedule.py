"""schedule: items that are enqueued repeatedly."""

import json
from typing import Annotated

import typer

from membox_queue.cli import group as groups
from membox_queue.cli import overview, screen
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing
from membox_queue.cli.options import AsJson, Db, Name, time_span
from membox_queue.cli.usage import UsageError
from membox_queue.queue import Queue
from membox_queue.terminal_text import duration
from membox_queue.wire import item as wire

app = typer.Typer(
    cls=groups.Group,
    callback=groups.take_options,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, add and remove schedules, which enqueue an item repeatedly.",
)
Called = Annotated[str, typer.Argument(metavar="NAME", help="The name of the schedule.")]


@app.command("list")
def list_schedules(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """List the schedules of the queue."""
    with existing(db, queue) as opened:
        found = opened.schedules()
    if as_json:
        screen.write_json([wire.schedule_fields(schedule) for schedule in found])
        return
    rows = [
        [
            schedule.name,
            f"{schedule.cron} {schedule.tz}" if schedule.cron else f"every {duration(schedule.every or 0)}",
            overview.due(schedule.next_at),
            overview.ago(schedule.last_at) or "never",
            wire.preview(schedule, wire.PREVIEW),
        ]
        for schedule in found
    ]
    if rows:
        screen.show(screen.table(["name", "when", "next", "last", "*content"], rows))
    else:
        screen.hint("no schedules")


@app.command()
def add(
    name: Called,
    content: Annotated[str, typer.Argument(metavar="CONTENT", help="What to enqueue; JSON with --as json.")],
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    cron: Annotated[str | None, typer.Option(help="Minute hour day month weekday, or @daily.")] = None,
    every: Annotated[float | None, typer.Option(parser=time_span, metavar="TIME", help="30s, 5m, 2h.")] = None,
    tz: Annotated[str, typer.Option(help="The time zone of --cron.")] = "UTC",
    priority: Annotated[int, typer.Option(help="Higher first.")] = 0,
    group: Annotated[str | None, typer.Option(help="The group of the items.")] = None,
    key: Annotated[str | None, typer.Option(help="Skip a tick while the last item is unfinished.")] = None,
    kind: Annotated[str, typer.Option("--as", metavar="text|json", help="How to read the content.")] = "text",
    as_json: AsJson = False,
) -> None:
    """Enqueue an item repeatedly; a schedule of that name is replaced."""
    if (cron is None) == (every is None):
        raise UsageError("give a time: either --cron '0 3 * * *' or --every 5m")
    if kind not in ("text", "json"):
        raise typer.BadParameter(f"--as is text or json, not {kind!r}")
    try:
        given = json.loads(content) if kind == "json" else content
    except ValueError as error:
        raise UsageError(f"the content is not JSON ({error})") from error
    with Queue(db, queue) as opened:
        made = opened.schedule(name, given, cron=cron, every=every, tz=tz, priority=priority, group=group, key=key)
    if as_json:
        screen.write_json(wire.schedule_fields(made))
    else:
        typer.echo(f"{made.name}: next at {made.next_at:%Y-%m-%d %H:%M:%S} UTC")


@app.command()
def remove(name: Called, db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Remove a schedule."""
    with existing(db, queue) as opened:
        if not opened.unschedule(name):
            known = ", ".join(schedule.name for schedule in opened.schedules()) or "none"
            raise UsageError(f"{opened.name} has no schedule {name!r}; it has: {known}")
    if as_json:
        screen.write_json({"queue": queue, "name": name, "removed": True})
    else:
        typer.echo(f"{name} removed")
