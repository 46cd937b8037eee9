"""ingest: accept documents now; handle them later, at once, or in a detached worker."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from membox_queue import NewItem
from membox_queue.cli import screen
from membox_queue.cli.loops import loop
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, find_handlers_here
from membox_queue.cli.options import AsJson, Db, Name, time_span
from membox_queue.cli.process import loaded_handler
from membox_queue.cli.usage import FAILED_ITEMS, UsageError
from membox_queue.document import document
from membox_queue.queue import Queue
from membox_queue.terminal_text import line, number
from membox_queue.wire.item import whole
from membox_queue.workers.names import check_handler


def ingest(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Text files; - is the standard input.")],
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    project: Annotated[str | None, typer.Option(help="The project; default: the name of the git repository.")] = None,
    priority: Annotated[int, typer.Option(help="Higher first.")] = 0,
    delay: Annotated[
        float | None, typer.Option(parser=time_span, metavar="TIME", help="Wait this long before handling: 30s, 5m.")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Items of a group run one at a time, in order.")] = None,
    key: Annotated[str | None, typer.Option(help="At most one unfinished item has this key.")] = None,
    kind: Annotated[str, typer.Option("--as", metavar="text|json|bytes", help="How to read the files.")] = "text",
    sync: Annotated[str | None, typer.Option(metavar="HANDLER", help="Handle the queue now, in this process.")] = None,
    spawn: Annotated[
        str | None, typer.Option(metavar="HANDLER", help="Start a detached worker unless one is running.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Enqueue documents; they are on disk when the command returns. HANDLER is package.module:function."""
    if sync and spawn:
        raise UsageError("--sync handles the queue in this process, --spawn in a detached one; choose one")
    if key is not None and len(files) > 1:
        raise UsageError("one key is for one item; give one file, or no --key")
    find_handlers_here()
    handler = loaded_handler(sync) if sync else None
    if spawn:
        check_handler(spawn)
    options: dict[str, Any] = {"priority": priority, "delay": delay, "group": group, "key": key}
    # All files are read before the first is enqueued, so one that cannot be read changes nothing.
    items = [NewItem(**read(file, kind, project), **options) for file in files]
    with Queue(db, queue) as opened:
        started = time.perf_counter()
        ids = opened.enqueue_many(items)
        took = time.perf_counter() - started
        if handler:
            finish(opened, handler, ids, as_json)
            return
        worker = "spawned" if spawn and opened.spawn_worker(spawn) else "alive" if opened.worker_is_alive() else "none"
        if as_json:
            screen.write_json({"ids": ids, "pending": opened.pending(), "worker": worker, "seconds": round(took, 6)})
            return
        typer.echo(f"accepted {named(ids)} in {took * 1000:.1f} ms · {opened.pending():,} pending · worker: {worker}")


def read(file: str, kind: str, project: str | None) -> dict[str, Any]:
    """Return a file as the arguments of an item."""
    if kind not in ("text", "json", "bytes"):
        raise typer.BadParameter(f"--as is text, json or bytes, not {kind!r}")
    named_project = {} if project is None else {"project": project}
    if file == "-":
        return {"content": parsed(sys.stdin.buffer.read(), kind, "the standard input"), **named_project}
    path = Path(file)
    if path.is_dir():
        raise UsageError(f"{file} is a directory; name the files in it: {path / '*'}")
    if not path.exists():
        raise UsageError(f"there is no file {file}; nothing was accepted")
    if kind == "text":
        try:
            return document(path) | named_project
        except ValueError as error:
            raise UsageError(f"{file} is not UTF-8 text; accept it with --as bytes. Nothing was accepted") from error
    content = path.read_bytes()
    return {"content": parsed(content, kind, file), "source_path": path.resolve(), **named_project}


def parsed(content: bytes, kind: str, name: str) -> Any:
    """Return the content of one file as text, JSON or bytes."""
    if kind == "bytes":
        return content
    try:
        decoded = content.decode("utf-8")
        return json.loads(decoded) if kind == "json" else decoded
    except ValueError as error:
        wanted = "JSON" if kind == "json" else "UTF-8 text"
        raise UsageError(f"{name} is not {wanted} ({error}); nothing was accepted") from error


def named(ids: list[int]) -> str:
    """Return which items: `item 7`, `3 items (7–9)`."""
    if len(ids) == 1:
        return f"item {ids[0]}"
    together = ids == list(range(ids[0], ids[0] + len(ids)))
    which = f"{ids[0]}–{ids[-1]}" if together else ", ".join(map(str, ids))
    return f"{number(len(ids), 'item')} ({which})"


def finish(queue: Queue, handler: Any, ids: list[int], as_json: bool) -> None:
    """Handle what is due, and print how the items ended."""
    # What a handler raises is printed at the end, item by item.
    if loop(queue, handler, stays=False, progress=not as_json, on_error=lambda *_: None).refused:
        # Another worker is running, and checks for new items once more before it ends.
        for id in ids:
            queue.wait(id)
    items = [item for id in ids if (item := queue.get(id))]
    if as_json:
        screen.write_json([whole(item, queue.history(item.id)) for item in items])
    for item in items if not as_json else []:
        words = f": {item.error}" if item.status == "failed" else ""
        typer.echo(f"item {item.id} {item.status}{line(words, 200)}")
    if any(item.status == "failed" for item in items):
        raise typer.Exit(FAILED_ITEMS)
