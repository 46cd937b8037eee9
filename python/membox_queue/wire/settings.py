"""The options of a queue as JSON."""

from __future__ import annotations

import math
from typing import Any

from membox_queue import _native


def to_json(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a queue was opened with as JSON values."""
    plain: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, _native.Retry):
            plain[name] = {part: getattr(value, part) for part in ("max", "base", "factor", "cap", "jitter", "kind")}
        elif isinstance(value, _native.Rate):
            plain[name] = {"count": value.count, "per": value.per}
        elif value is not None and value != math.inf:
            plain[name] = value
    return plain


def from_json(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the options that `to_json` wrote."""
    made: dict[str, Any] = {}
    for name, value in plain.items():
        if name == "retry":
            made[name] = _native.Retry(**value)
        elif name in ("rate", "group_rate"):
            made[name] = _native.Rate(**value)
        else:
            made[name] = value
    return made
