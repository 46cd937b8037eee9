"""list, show and failures: items in one line each, or one in full."""

import json
import sys
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from membox_queue import Attempt, Item
from membox_queue.cli import overview, screen, tree
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, known
from membox_queue.cli.options import AsJson, Db, Name
from membox_queue.cli.usage import UsageError
from membox_queue.queue import Queue
from membox_queue.terminal_text import block, duration, line
from membox_queue.wire import item as wire

Limit = Annotated[int, typer.Option(min=1, help="Maximum number of items.")]
Id = Annotated[int, typer.Argument(metavar="ID", help="The id of the item.")]


def list_items(
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    status: Annotated[str | None, typer.Option(help="pending, processing, blocked, done, failed or cancelled.")] = None,
    project: Annotated[str | None, typer.Option(help="Only items of this project.")] = None,
    group: Annotated[str | None, typer.Option(help="Only items of this group.")] = None,
    limit: Limit = 20,
    after: Annotated[
        int | None, typer.Option(metavar="ID", help="Continue after the last item of the previous page.")
    ] = None,
    oldest: Annotated[bool, typer.Option("--oldest", help="Oldest first.")] = False,
    as_json: AsJson = False,
) -> None:
    """List items, newest first."""
    with known(db, queue) as opened:
        page: dict[str, Any] = {"status": status, "project": project, "group": group, "after": after}
        found = opened.items(**page, limit=limit, newest_first=not oldest)
    items = [wire.brief(item) for item in found]
    if as_json:
        screen.write_json(items)
        return
    rows: list[list[Any]] = [[str(item["id"]), screen.status_text(item["status"]), *about(item)] for item in items]
    if rows:
        screen.show(screen.table([">id", "status", "age", ">attempt", "*document", "*content"], rows))
    if len(rows) == limit:
        screen.hint(f"more: --after {items[-1]['id']}")
    elif not rows:
        screen.hint("no items")


def about(item: dict[str, Any]) -> list[str]:
    """The columns of an item that are the same for all."""
    age = overview.ago(item["enqueued_at"]).removesuffix(" ago")
    name = overview.document(item) if item["source_path"] else ""
    return [age, str(item["attempt"]), name, item["error"] if item["status"] == "failed" else item["preview"]]


def failures(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the latest failed items with their errors, newest first."""
    with known(db, queue) as opened:
        items = [wire.brief(item) for item in opened.failures(limit=limit)]
    if as_json:
        screen.write_json(items)
    elif items:
        screen.show(overview.failure_table(items))
    else:
        screen.hint("no failed items")


def show(
    id: Id,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    content: Annotated[bool, typer.Option("--content", help="Write only the content, unchanged.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one item of any queue: its fields, history, content, and what it waits for."""
    with ExitStack() as stack:
        opened = owner(stack.enter_context(known(db, queue)), id, stack)
        item, root, history = opened.get(id), opened.tree(id), opened.history(id)
    if item is None or root is None:
        raise UsageError(f"item {id} was removed a moment ago")
    if as_json:
        screen.write_json({**wire.whole(item, history), **tree.facts(root)})
    elif content:
        write(item.content)
    else:
        show_item(item, history)
        tree.show_tree(root)


def owner(queue: Queue, id: int, stack: ExitStack) -> Queue:
    """Return the queue that an item is in or began in. Raise UsageError if the file has no item of that id."""
    if queue.get(id) is not None:
        return queue
    for name in queue.queues():
        other = stack.enter_context(Queue(queue.path or ":memory:", name))
        if other.get(id) is not None:
            return other
    raise UsageError(f"no queue of the file has an item {id}")


def write(content: Any) -> None:
    """Write content unchanged; on a terminal, unprintable characters are escaped."""
    raw = content if isinstance(content, bytes) else as_text(content).encode("utf-8", "surrogatepass")
    if sys.stdout.isatty():
        typer.echo(block(raw.decode("utf-8", "replace")))
    else:
        sys.stdout.buffer.write(raw)


def as_text(content: Any) -> str:
    """Content as text."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)


def show_item(item: Item, history: list[Attempt]) -> None:
    """Print an item for people."""
    seen = wire.brief(item)
    times = ("enqueued_at", "run_at", "started_at", "finished_at", "expires_at")
    facts: list[list[Any]] = [["status", screen.status_text(item.status)]]
    facts += [
        [name.removesuffix("_at").replace("_", " "), f"{value:%Y-%m-%d %H:%M:%S} UTC"]
        for name in times
        if (value := seen[name])
    ]
    names = ("source_path", "project", "doc_date", "priority", "group", "key", "attempt", "retries", "worker")
    facts += [[name.replace("_", " "), str(seen[name])] for name in names if seen[name]]
    if item.progress is not None:
        facts.append(["progress", f"{item.progress:.0%} {item.progress_note or ''}"])
    if item.headers:
        facts.append(["headers", json.dumps(item.headers, ensure_ascii=False)])
    parts: list[Any] = [
        screen.text(f"item {item.id} of {item.queue}", "bold"),
        screen.indented(screen.facts(["what", "*"], facts)),
    ]
    if history:
        columns = [">attempt", "ending", "took", "*worker", "*error"]
        rows = [attempt_row(attempt) for attempt in history]
        parts += ["", screen.text("history", "bold"), screen.indented(screen.table(columns, rows))]
    screen.show(*parts)
    if item.error and item.status in ("failed", "cancelled"):
        passage("error", item.error)
    if item.result is not None:
        passage("result", as_text(item.result))
    bytes_held = isinstance(item.content, bytes)
    passage("content", wire.preview(item, 80) if bytes_held else as_text(item.content))


def passage(name: str, text: str) -> None:
    """Text of several lines under its name."""
    screen.show("", screen.text(name, "bold"))
    typer.echo("\n".join(f"  {row}".rstrip() for row in block(text).rstrip("\n").split("\n")))


def attempt_row(attempt: Attempt) -> list[Any]:
    """How one attempt ended."""
    took = ""
    if attempt.started_at and attempt.ended_at:
        took = duration((attempt.ended_at - attempt.started_at).total_seconds())
    ending = screen.status_text(attempt.ending)
    return [str(attempt.attempt), ending, took, attempt.worker or "", line(attempt.error or "", screen.LONGEST)]
