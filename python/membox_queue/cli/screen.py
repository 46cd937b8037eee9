"""Output for people: tables without boxes, one line an item, and no markup in stored text.

rich is imported when something is shown, so that a worker starts without it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from membox_queue.terminal_text import line
from membox_queue.wire.item import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

IN_A_PIPE = 10_000
"""The width in a pipe, where lines are not wrapped; long texts are cut separately."""
LONGEST = 100
"""Characters of a long text in a line."""
STYLES = {
    "pending": "yellow",
    "processing": "cyan",
    "done": "green",
    "failed": "red",
    "cancelled": "magenta",
    "lost": "red",
    "postponed": "yellow",
    "released": "yellow",
}


def console(stderr: bool = False) -> Console:
    """A console that takes text as it is."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = IN_A_PIPE
    return made


def text(words: str, style: str = "") -> Text:
    """One line of text, cut where the line ends."""
    from rich.text import Text

    return Text(line(words, LONGEST), style=style, no_wrap=True, overflow="ellipsis")


def status_text(status: str) -> Text:
    """A status, or how an attempt ended, in its colour."""
    return text(status, STYLES.get(status, ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table without a box. A name that starts with `>` is a column of numbers, `*` one that gives way first."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(
            text(name.lstrip(">*").upper(), "dim"),
            justify="right" if name.startswith(">") else "left",
            no_wrap=not name.startswith("*"),
            overflow="ellipsis",
        )
    for row in rows:
        made.add_row(*(text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def facts(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table without a header, whose first column is as wide as in others of its kind."""
    made = table(columns, rows)
    made.show_header = False
    made.columns[0].min_width = 12
    return made


def show(*parts: RenderableType) -> None:
    """Print to stdout; a pipe gets plain lines without blanks at their ends."""
    out = console()
    if out.is_terminal:
        for part in parts:
            out.print(part)
        return
    with out.capture() as captured:
        for part in parts:
            out.print(part)
    sys.stdout.write("".join(f"{row.rstrip()}\n" for row in captured.get().splitlines()))


def write_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.write(to_json(value) + "\n")


def hint(words: str) -> None:
    """Write a hint to stderr, where it does not mix with the output."""
    console(stderr=True).print(text(words, "dim"))


def indented(part: Any) -> RenderableType:
    """The same, two columns further to the right."""
    from rich.padding import Padding

    return Padding(part, (0, 0, 0, 2), expand=False)
