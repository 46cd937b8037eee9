"""Assertions about the items of a queue; a failed one lists what the queue holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from membox_queue import Item, Queue

UNFINISHED = ("pending", "processing", "blocked")
ANYTHING: Any = object()
"""Stands for any content."""
LISTED = 20
"""How many items a failed assertion lists, the newest."""
WIDTH = 60
"""How many characters of a content or an error it shows."""


def assert_enqueued(queue: Queue, content: Any = ANYTHING, *, count: int | None = None, **fields: Any) -> list[Item]:
    """Assert that an item is pending, processing or blocked, and return those that match.

    `fields` are compared with the item's attributes: `project="p"`, `priority=5`, `group="coder"`, … `count` is exactly
    how many; None is one or more.
    """
    __tracebackhide__ = True
    return expect(queue, "waiting", UNFINISHED, content, count, fields)


def assert_done(queue: Queue, content: Any = ANYTHING, *, count: int | None = None, **fields: Any) -> list[Item]:
    """Assert that an item is done, and return those that match; `result=` is one of the fields."""
    __tracebackhide__ = True
    return expect(queue, "done", ("done",), content, count, fields)


def assert_failed(
    queue: Queue,
    content: Any = ANYTHING,
    *,
    error: str | re.Pattern[str] | None = None,
    count: int | None = None,
    **fields: Any,
) -> list[Item]:
    """Assert that an item ended as failed, and return those that match.

    `error` is a part of its failure text, or a compiled pattern that is found in it.
    """
    __tracebackhide__ = True
    if error is not None:
        fields["error"] = Containing(error)
    return expect(queue, "failed", ("failed",), content, count, fields)


def assert_after(queue: Queue, item: int | Item, *expected: int | Item) -> list[Item | None]:
    """Assert that an item waits or waited for exactly these items, in this order, and return them.

    All are given as ids or items. None in the result stands for an item that was removed.
    """
    __tracebackhide__ = True
    id, *wanted = [each if isinstance(each, int) else each.id for each in (item, *expected)]
    node = queue.tree(id, limit=1_000_000)
    if node is None or node.item is None:
        raise AssertionError(f"queue {queue.name!r} has no item {id}")
    found = [need.id for need in node.after]
    if found != wanted:
        there = [need.item for need in node.after if need.item is not None]
        held = f"\n{listing(there, {})}" if there else ""
        raise AssertionError(f"expected item {id} after {wanted}, found {found}.{held}")
    return [need.item for need in node.after]


def assert_empty(queue: Queue) -> None:
    """Assert that no item is pending, processing or blocked; finished items do not count."""
    __tracebackhide__ = True
    left = [item for item in items_with(queue) if item.status in UNFINISHED]
    if left:
        raise AssertionError(f"queue {queue.name!r} is not empty:\n{listing(left, {})}")


class Containing:
    """Equal to every text that contains it."""

    def __init__(self, part: str | re.Pattern[str]) -> None:
        self.pattern = re.compile(re.escape(part)) if isinstance(part, str) else part
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.pattern.search(other) is not None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"…{self.part}…" if isinstance(self.part, str) else repr(self.part)


def expect(
    queue: Queue, state: str, statuses: tuple[str, ...], content: Any, count: int | None, fields: dict[str, Any]
) -> list[Item]:
    """Return the items that match, or raise an AssertionError that lists what is there instead."""
    __tracebackhide__ = True
    wanted = fields if content is ANYTHING else {"content": content, **fields}
    items = items_with(queue)
    check_names(queue, fields)
    found = [item for item in items if item.status in statuses and fits(item, wanted)]
    if (count is None and found) or len(found) == count:
        return found
    described = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
    asked = f"{'an item' if count is None else f'exactly {count}'} {state} in queue {queue.name!r}"
    asked += f" with {described}" if described else ""
    there = f"It holds\n{listing(items, fields)}" if items else "It holds no items at all."
    raise AssertionError(f"expected {asked}, found {len(found) or 'none'}. {there}")


def fits(item: Item, wanted: dict[str, Any]) -> bool:
    """Return whether an item matches. The wanted value does the comparing, so that it may define equality."""
    return all(bool(value == getattr(item, name)) for name, value in wanted.items())


def check_names(queue: Queue, fields: dict[str, Any]) -> None:
    """Raise TypeError for a field that no item has."""
    from membox_queue import Item

    known = [name for name in vars(Item) if not name.startswith("_") and not callable(getattr(Item, name))]
    for name in fields:
        if name not in known:
            raise TypeError(f"items have no field {name!r}; they have {', '.join(sorted(known))}")


def items_with(queue: Queue, **filters: Any) -> list[Item]:
    """Return all items of a queue that the filters of `Queue.items` choose, read page by page."""
    items: list[Item] = []
    while page := queue.items(limit=1000, after=items[-1].id if items else None, **filters):
        items += page
    return items


def listing(items: list[Item], fields: dict[str, Any]) -> str:
    """Return a line for each item, with the fields that were asked for and its last error."""
    lines = []
    for item in items[-LISTED:]:
        asked = [f"{name}={shortened(repr(getattr(item, name)))}" for name in fields if name != "error"]
        parts = [f"#{item.id:<3} {item.status:<10} {shortened(repr(item.content))}", *asked, *reasons(item)]
        lines.append("  " + "  ".join(parts))
    earlier = len(items) - len(lines)
    return "\n".join([f"  … {earlier} earlier"] * bool(earlier) + lines)


def described(item: Item) -> str:
    """Return an item in a few words: its state, its content, and why it waits."""
    return " ".join([f"#{item.id} {item.status} {shortened(repr(item.content))}", *reasons(item)])


def reasons(item: Item) -> list[str]:
    """Return what an item waits for, and its last error."""
    parts = []
    if item.run_at is not None and item.status == "pending":
        parts.append(f"due {item.run_at:%Y-%m-%d %H:%M:%S}")
    if item.status == "blocked" and (needs := unmet(item)):
        parts.append(f"after {', '.join(f'#{need.id} in {need.queue}' for need in needs)}")
    if item.error:
        parts.append(f"error: {shortened(item.error)}")
    return parts


def unmet(item: Item) -> list[Item]:
    """Return the items that a blocked item waits for and that have not ended."""
    return [need for need in item.after if need is not None and need.status in UNFINISHED]


def shortened(text: str) -> str:
    """Return the text in one line, cut to WIDTH."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
