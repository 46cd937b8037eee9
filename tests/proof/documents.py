"""Contents that say who they are and whether they are whole."""

from __future__ import annotations

import hashlib
from typing import Any


def body(uid: str, size: int) -> str:
    return (hashlib.sha256(uid.encode()).hexdigest() * (size // 64 + 1))[:size]


def document(uid: str, size: int, kind: str) -> Any:
    """A text, bytes or JSON document of about that size."""
    if kind == "json":
        return {"uid": uid, "size": size, "body": body(uid, size)}
    text = f"{uid}|{size}|{body(uid, size)}"
    return text.encode() if kind == "bytes" else text


def uid_of(content: Any) -> str | None:
    """Whose document this is; None if it is none of ours, or not as it was made."""
    if isinstance(content, bytes):
        content = content.decode(errors="replace")
    if isinstance(content, str):
        uid, _, rest = content.partition("|")
        size, _, found = rest.partition("|")
    elif isinstance(content, dict):
        uid, size, found = str(content.get("uid")), str(content.get("size")), content.get("body")
    else:
        return None
    whole = size.isdigit() and found == body(uid, int(size))
    return uid if whole else None
