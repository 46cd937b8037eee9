"""The fenced blocks of a Markdown file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Block(NamedTuple):
    language: str
    words: list[str]
    text: str
    line: int
    """Of the file, where the text begins."""


def blocks_of(path: Path) -> list[Block]:
    """All blocks in their order; one that is never closed is an error."""
    blocks, fence, lines, begun = [], None, [], 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if fence is None and line.startswith("```"):
            fence, lines, begun = line[3:].split(), [], number
        elif fence is not None and line == "```":
            language, *words = fence or [""]
            blocks.append(Block(language, words, "\n".join(lines) + "\n", begun))
            fence = None
        elif fence is not None:
            lines.append(line)
    assert fence is None, f"{path.name}: the block of line {begun} is never closed"
    return blocks
