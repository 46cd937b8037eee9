"""Findings of `doctor` as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from membox_queue.cli import screen
from membox_queue.terminal_text import line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from membox_queue.wire.health import Finding

STYLES = {"ok": "green", "note": "yellow", "bad": "red"}


def lines(findings: list[Finding]) -> list[RenderableType]:
    """The findings for people."""
    rows = [[screen.text(found.level, STYLES[found.level]), found.about, wrapping(found.words)] for found in findings]
    table = screen.table(["level", "about", "*words"], rows)
    table.show_header = False
    return [table]


def wrapping(words: str) -> Any:
    """Advice is worth a second line: nothing of it is cut."""
    from rich.text import Text

    return Text(line(words))
