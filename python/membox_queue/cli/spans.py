"""Time spans as people type them: `90`, `30s`, `5m`, `2h`, `7d`."""

import re
from argparse import ArgumentTypeError

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")


def seconds(typed: str | float) -> float:
    """Read a time span."""
    found = FORM.fullmatch(str(typed).strip().lower())
    if not found:
        raise ArgumentTypeError(f"{typed!r} is not a time span; write seconds, or 30s, 5m, 2h, 7d")
    return float(found[1]) * UNITS[found[2]]
