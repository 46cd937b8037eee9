"""Text for a terminal: stored text without control characters, durations, sizes and counts."""

from __future__ import annotations

import re

UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, and those that turn the direction of what follows: a terminal would obey them."""


def block(text: str) -> str:
    """Text of several lines, with unprintable characters spelled out."""
    return UNPRINTABLE.sub(spelled, text.replace("\r\n", "\n"))


def line(text: str, width: int = 0) -> str:
    """Text as one line, cut with an ellipsis if it is longer than `width`."""
    # A long document is not worth going through for its first words.
    start = text[: 4 * width] if width else text
    shown = block(" ".join(start.split()))
    return f"{shown[: width - 1].rstrip()}…" if width and (len(shown) > width or len(start) < len(text)) else shown


def spelled(found: re.Match[str]) -> str:
    """Spell a character out, by its number."""
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def duration(seconds: float) -> str:
    """A time span in the two units that matter: `250ms`, `12s`, `3m 5s`, `2h`, `3d 2h`."""
    whole = max(0, int(seconds))
    if whole == 0:
        return f"{max(0.0, seconds) * 1000:.0f}ms"
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    first = next(place for place, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count)


def size(count: float) -> str:
    """A number of bytes: `12 B`, `3.4 KB`, `1.2 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def number(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 item`, `3 items`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
