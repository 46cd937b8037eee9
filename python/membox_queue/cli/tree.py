"""The tree of an item: what it waits for and what it has made, a line each."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import typer

from membox_queue import Node
from membox_queue.cli import screen
from membox_queue.terminal_text import duration, line
from membox_queue.wire.item import preview


def show_tree(root: Node) -> None:
    """Print the items below an item, and those that need it; nothing if there are none."""
    if root.after or root.children:
        waits = [node for node in root.after if node.item is None or node.item.status != "done"]
        words = f"waits for {len(waits)} of {len(root.after)}" if root.after else "has made"
        screen.show("", screen.text(f"tree: {words}", "bold"))
        # Printed as it is: the blanks of the branches count.
        for row in drawn(root):
            typer.echo(f"  {row}")
    if root.needed_by:
        named = ", ".join(map(str, root.needed_by[:10])) + (", …" if len(root.needed_by) > 10 else "")
        screen.show("", screen.text(f"needed by {named}"))


def drawn(root: Node) -> Iterator[str]:
    """Return a line for each item below the first. A tree may be deeper than Python's stack."""
    left = list(reversed(branches(root, "")))
    while left:
        stem, fork, node = left.pop()
        yield stem + fork + (about(node) if isinstance(node, Node) else node)
        if isinstance(node, Node):
            left += reversed(branches(node, stem + ("   " if fork.startswith("└") else "│  ")))


def branches(node: Node, stem: str) -> list[tuple[str, str, Node | str]]:
    """Return what is directly below an item."""
    below: list[Node | str] = [*node.after, *node.children]
    if node.left_out:
        below.append(f"{node.left_out:,} more")
    forks = ["├─ "] * (len(below) - 1) + ["└─ "]
    return [(stem, fork, each) for fork, each in zip(forks, below, strict=True)] if below else []


def about(node: Node) -> str:
    """Return one item in a line."""
    item = node.item
    if item is None:
        return f"{node.id}  removed"
    parts = [str(item.id), line(item.queue, 40), item.status]
    if item.error and item.status in ("failed", "cancelled"):
        parts.append(line(item.error, screen.LONGEST))
    elif item.result is not None:
        parts.append(line(json.dumps(item.result, ensure_ascii=False), 40))
    elif item.status == "processing":
        shown = "" if item.progress is None else f"{item.progress:.0%} {item.progress_note or ''}"
        parts += [line(part, 40) for part in (item.worker or "", shown.strip()) if part]
    else:
        parts.append(preview(item, 40))
    if item.expires_at and item.status in ("pending", "blocked", "processing"):
        left = (item.expires_at - datetime.now(UTC)).total_seconds()
        parts.append(f"expires in {duration(left)}" if left > 0 else "has expired")
    if node.repeated:
        parts.append("(see above)")
    return "  ".join(parts)


def facts(root: Node) -> dict[str, Any]:
    """Return what is directly below and above an item, as plain values."""
    return {
        "after": [node.id for node in root.after],
        "children": [node.id for node in root.children],
        "needed_by": root.needed_by,
    }
