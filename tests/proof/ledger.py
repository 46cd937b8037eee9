"""A ledger outside the database: what each process was about to do, and what came of it."""

from __future__ import annotations

import itertools
import json
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass
class Operation:
    """One call: when it began, when it ended (None: never, as far as anybody knows), and what it returned."""

    op: str
    verb: str
    about: dict[str, Any]
    start: int
    end: int | None = None
    outcome: Any = None
    raised: str | None = None

    @property
    def who(self) -> str:
        return self.op.partition(".")[0]

    @property
    def known(self) -> bool:
        return self.end is not None and self.raised is None


@dataclass
class Ledger:
    """The pen of one process. Every record is one append, so that a kill leaves whole records and at most one stump."""

    path: Path
    who: str
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **record: Any) -> None:
        # A line break before it too: the stump of another record must not swallow this one.
        os.write(self.file, f"\n{json.dumps(record)}\n".encode())

    def begin(self, verb: str, **about: Any) -> str:
        op = f"{self.who}.{next(self.numbers)}"
        self.write(op=op, verb=verb, start=time.monotonic_ns(), about=about)
        return op

    def end(self, op: str, outcome: Any) -> None:
        self.write(op=op, end=time.monotonic_ns(), outcome=outcome)

    def call(
        self, verb: str, call: Callable[[], Any], shown: Callable[[Any], Any] = lambda it: it, **about: Any
    ) -> Any:
        """Call, with the intent written before and the outcome after."""
        op = self.begin(verb, **about)
        try:
            outcome = call()
        except BaseException as error:
            self.write(op=op, end=time.monotonic_ns(), raised=f"{type(error).__name__}: {error}")
            raise
        self.end(op, shown(outcome))
        return outcome


def read(path: Path) -> list[Operation]:
    """All operations in the order in which they were begun."""
    operations: dict[str, Operation] = {}
    for line in path.read_text(errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if "verb" in record:
            operations[record["op"]] = Operation(**record)
        else:
            operation = operations[record["op"]]
            operation.end = record["end"]
            operation.outcome = record.get("outcome")
            operation.raised = record.get("raised")
    return list(operations.values())
