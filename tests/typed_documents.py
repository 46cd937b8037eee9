"""The types that tests of typed content share."""

# ruff: noqa: UP045 - both forms are written

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, NotRequired, Optional, TypedDict

NOW = datetime(2026, 11, 16, 10, 30, 15, 123456, UTC)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Page:
    number: int
    text: str = ""


@dataclass
class Doc:
    title: str
    at: datetime | None = None
    color: Color = Color.RED
    kind: Literal["note", "mail", 3] = "note"
    pages: list[Page] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    parent: Optional[Doc] = None
    tags: frozenset[str] = frozenset()
    _: KW_ONLY
    length: int = field(init=False, default=0)
    is_read: bool = False

    def __post_init__(self) -> None:
        self.length = len(self.title)


@dataclass(frozen=True, slots=True)
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError("must be positive")


class Letter(TypedDict):
    to: str
    at: NotRequired[datetime]
    copies: NotRequired[list[str]]
