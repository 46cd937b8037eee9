"""What an adapter offers, so that one workload can measure every library."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from compare.documents import Document

Sync: TypeAlias = Literal["NORMAL", "FULL"]

BUSY_SECONDS = 30
"""How long every library waits for another writer, where that can be set."""


class UnsupportedError(Exception):
    """The library has no such verb or setting; the text says what it has instead."""


class BrokenError(Exception):
    """A measured run did not do what it was measured for."""


class Claimed(NamedTuple):
    """A document in hand, and what the library wants back to finish it."""

    document: Document
    receipt: Any


class Census(NamedTuple):
    """How many items a file holds; finished ones are None where the library deletes them."""

    waiting: int
    in_work: int
    finished: int | None


class Adapter(ABC):
    """One open queue of one library, in a folder of its own."""

    name: ClassVar[str]
    distribution: ClassVar[str | None] = None
    """What to ask the installed version of; None for the standard library."""
    notes: ClassVar[tuple[str, ...]] = ()
    """What a reader must know to judge the numbers."""
    file_name: ClassVar[str] = "queue.db"
    one_per_thread: ClassVar[bool] = False
    """Whether threads open one each, because the library's object is not made for sharing."""
    delivers_at_least_once: ClassVar[bool] = True
    busy_errors: ClassVar[tuple[type[Exception], ...]] = (sqlite3.OperationalError,)
    """What the library raises when other writers kept it waiting too long."""

    seed_sql: ClassVar[str]
    """Inserts one row as the library would have left it."""
    census_sql: ClassVar[str]
    """One row: waiting, in work, finished."""

    @abstractmethod
    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        """Open the queue. `threads` says that several threads will share this object."""

    @abstractmethod
    def put(self, document: Document) -> None: ...

    def put_many(self, documents: Sequence[Document]) -> None:
        """Put all in one transaction."""
        raise UnsupportedError("no verb that puts several items in one transaction")

    @abstractmethod
    def claim(self) -> Claimed | None: ...

    @abstractmethod
    def finish(self, receipt: Any) -> None: ...

    def drain(self, handler: Callable[[Document], object]) -> None:
        """Claim, handle and finish until nothing is left; the plain loop where the library has no verb for it."""
        while (claimed := self.claim()) is not None:
            handler(claimed.document)
            self.finish(claimed.receipt)

    def work(self, handler: Callable[[Document], object], goes_on: Callable[[], bool]) -> None:
        """Run the library's own worker, one of it, until `goes_on` says no; a plain loop where it has none."""
        while goes_on():
            if (claimed := self.claim()) is None:
                time.sleep(0.001)
                continue
            handler(claimed.document)
            self.finish(claimed.receipt)

    def wait(self, seconds: float) -> Claimed | None:
        """Claim, waiting for work that another process may put."""
        raise UnsupportedError("no verb that waits")

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def fill(cls, folder: Path, documents: Sequence[Document]) -> None:
        """Put documents through the library itself, outside of any measurement, and leave the file checkpointed."""
        with cls(folder, "NORMAL") as library:
            try:
                library.put_many(documents)
            except UnsupportedError:
                for document in documents:
                    library.put(document)

    @classmethod
    def fill_for_work(cls, folder: Path, documents: Sequence[Document]) -> None:
        """Put documents so that `work` finds them."""
        cls.fill(folder, documents)

    @classmethod
    @abstractmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        """Return the values that `seed_sql` takes. Raises `UnsupportedError` where finished items leave no row."""

    @classmethod
    def seed(cls, folder: Path, documents: Iterable[Document], *, finished: bool) -> None:
        """Write rows straight into the table: a million puts would take some libraries an hour."""
        cls(folder, "NORMAL").close()
        with closing(sqlite3.connect(folder / cls.file_name)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.executemany(cls.seed_sql, (cls.seed_row(document, finished=finished) for document in documents))
            connection.commit()

    @classmethod
    def census(cls, folder: Path) -> Census:
        """Count with SQL, not with the library. Only when it is closed: two SQLites in a process lose locks."""
        with closing(sqlite3.connect(folder / cls.file_name)) as connection:
            waiting, in_work, finished = connection.execute(cls.census_sql).fetchone()
        return Census(waiting or 0, in_work or 0, finished)
