"""A queue at a glance, as lines for people."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from membox_queue.cli import screen
from membox_queue.terminal_text import duration, number
from membox_queue.wire.overview import now

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import RenderableType
    from rich.text import Text

SHOWN = ("pending", "processing", "done", "failed")
"""Statuses that are shown even if their count is zero."""
MOST_WORKERS = 8
"""Workers that are shown, each on a line."""


def ago(time: datetime | None) -> str:
    """Return how long ago a time was."""
    return "" if time is None else f"{duration((now() - time).total_seconds())} ago"


def lines(seen: dict[str, Any]) -> list[RenderableType]:
    """Return an overview as lines for people."""
    parts: list[RenderableType] = [
        heading(seen),
        screen.indented(screen.facts(["status", ">count", "*"], counts(seen))),
        screen.indented(screen.facts(["what", "*"], facts(seen))),
    ]
    if seen["running"]:
        rows = [running_row(item) for item in seen["running"]]
        columns = [">id", "*document", "for", ">attempt", "*progress", "worker"]
        parts += ["", screen.text("in progress", "bold"), screen.indented(screen.table(columns, rows))]
    if seen["failures"]:
        parts += ["", screen.text("recent failures", "bold"), screen.indented(failure_table(seen["failures"]))]
    return parts


def heading(seen: dict[str, Any]) -> Text:
    """Which queue this is."""
    made = screen.text("")
    made.append_text(screen.text(seen["queue"], "bold")).append("  ").append_text(screen.text(seen["file"], "dim"))
    if seen["paused"]:
        made.append("  PAUSED", "bold red")
    return made


def counts(seen: dict[str, Any]) -> list[list[str | Text]]:
    """A line for each status."""
    waits = [f"oldest waits {duration(age)}"] if (age := seen["oldest_pending_age"]) is not None else []
    waits += [f"{seen['delayed']:,} delayed"] if seen["delayed"] else []
    stuck = (
        [f"{len(seen['stuck']):,} stuck: held by dead workers, the next claim reclaims them"] if seen["stuck"] else []
    )
    notes = {"pending": ", ".join(waits), "processing": ", ".join(stuck)}
    rows: list[list[str | Text]] = []
    for status, count in seen["counts"].items():
        if count or status in SHOWN:
            rows.append([screen.text(status, screen.STYLES.get(status, "")), f"{count:,}", notes.get(status, "")])
    return rows


def facts(seen: dict[str, Any]) -> list[list[str | Text]]:
    """Return further facts, one a line."""
    rows: list[list[str | Text]] = workers(seen)
    if seen["next_due_at"]:
        rows.append(["next due", due(seen["next_due_at"])])
    if seen["groups"]:
        rows.append(["groups", f"{seen['groups']:,} with unfinished items"])
    others = [
        f"{name} ({number(count['pending'] + count['processing'], 'pending', 'pending')})"
        for name, count in seen["queues"].items()
        if name != seen["queue"]
    ]
    if others:
        rows.append(["other queues", ", ".join(others)])
    return rows


def due(moment: datetime) -> str:
    """Return how long until a moment; what is past waits for the next claim."""
    left = (moment - now()).total_seconds()
    return f"in {duration(left)}" if left > 0 else "now"


def workers(seen: dict[str, Any]) -> list[list[str | Text]]:
    """Return a line for each worker of the queue, or how to start one."""
    found = [worker(each) for each in seen["workers"][:MOST_WORKERS]]
    if (more := len(seen["workers"]) - len(found)) > 0:
        found.append(f"… and {more:,} more")
    if not any(each["alive"] for each in seen["workers"]):
        found.append(no_worker(seen))
    return [["worker" if index == 0 else "", words] for index, words in enumerate(found)]


def worker(found: dict[str, Any]) -> str:
    """Return who works, since when, and on how much."""
    if not found["alive"]:
        state = "dead"
    elif found["stopping"]:
        state = "stopping"
    else:
        state = found["kind"] or "no loop"
    named = found["name"] if found["pid"] is None else f"{found['name']}, pid {found['pid']} on {found['host']}"
    if found["name"] == f"{found['host']}:{found['pid']}":
        named = found["name"]
    since = [] if found["since"] is None else [f"for {duration((now() - found['since']).total_seconds())}"]
    return ", ".join([f"{named} ({state})", *since, f"{len(found['item_ids']):,} in progress"])


def no_worker(seen: dict[str, Any]) -> str:
    """Return that there is no worker, and what to do if one is needed."""
    if seen["paused"] and seen["counts"]["pending"]:
        return "none; paused until: membox-queue resume"
    if seen["counts"]["pending"]:
        return "none; start one: membox-queue process HANDLER"
    return "none"


def running_row(item: dict[str, Any]) -> list[str | Text]:
    """An item that is being worked on."""
    fraction = item["progress"]
    progress = "" if fraction is None else f"{fraction:4.0%} {item['progress_note'] or ''}"
    since = "" if item["started_at"] is None else duration((now() - item["started_at"]).total_seconds())
    return [str(item["id"]), document(item), since, str(item["attempt"]), progress, item["worker"] or ""]


def failure_table(failures: list[dict[str, Any]]) -> RenderableType:
    """Failures, one a line."""
    rows: list[list[str | Text]] = [
        [
            str(item["id"]),
            document(item),
            str(item["retries"]),
            ago(item["finished_at"]),
            screen.text(item["error"] or "", "red"),
        ]
        for item in failures
    ]
    return screen.table([">id", "*document", ">tries", "when", "*error"], rows)


def document(item: dict[str, Any]) -> str:
    """Return what people call an item: the name of its file, else its first words."""
    return PurePath(item["source_path"]).name if item["source_path"] else item["preview"]
