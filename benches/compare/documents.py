"""The documents that are put: small JSON, 5 KB and 100 KB of text, each with a number of its own."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any, Literal, TypeAlias

Document: TypeAlias = str | dict[str, Any]
Size: TypeAlias = Literal["small JSON", "100 bytes", "5 KB", "100 KB"]

LENGTHS = {"100 bytes": 100, "5 KB": 5_000, "100 KB": 100_000}
NUMBER_DIGITS = 8


@cache
def _prose(length: int) -> str:
    """Plain text with the quotes and line ends that JSON has to escape; the same in every run."""
    chance = random.Random(6)
    words = ['"queue"', "file", "agent", "hands", "over", "document", "worker", "slow\n", "and", "goes", "on."]
    text = " ".join(chance.choice(words) for _ in range(length // 3))
    return text[:length]


def make(size: Size, number: int) -> Document:
    if size == "small JSON":
        return {"number": number, "project": "demo", "tags": ["note", "agent"], "text": "We keep queue and data."}
    return f"{number:0{NUMBER_DIGITS}d}\n{_prose(LENGTHS[size] - NUMBER_DIGITS - 1)}"


def many(size: Size, count: int, first: int = 0) -> list[Document]:
    return [make(size, number) for number in range(first, first + count)]


def number_of(document: Document) -> int:
    return int(document["number"] if isinstance(document, dict) else document[:NUMBER_DIGITS])


def to_text(document: Document) -> str:
    """What a user of a library that stores text would write."""
    return document if isinstance(document, str) else json.dumps(document)


def from_text(text: str) -> Document:
    """The other way; our text documents begin with a digit, so a brace means JSON."""
    return json.loads(text) if text.startswith("{") else text
