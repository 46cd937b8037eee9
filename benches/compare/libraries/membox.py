"""membox_queue itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import membox_queue

from compare.adapter import BUSY_SECONDS, Adapter, BrokenError, Claimed, Sync
from compare.documents import Document, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

DURABILITY: dict[Sync, Literal["normal", "full"]] = {"NORMAL": "normal", "FULL": "full"}


class Membox(Adapter):
    name = "membox_queue"
    distribution = "membox-queue"
    notes = ("at FULL, put and finish wait for the disk; a claim, whose loss costs a redelivery, does not",)
    busy_errors = (membox_queue.QueueBusyError,)
    seed_sql = "INSERT INTO ingest_queue (content, content_type, status, attempt, finished_at) VALUES (?, ?, ?, ?, ?)"
    census_sql = (
        "SELECT sum(status = 'pending'), sum(status = 'processing'), coalesce(sum(status = 'done'), 0) "
        "FROM ingest_queue"
    )

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        path = folder / self.file_name
        self.queue = membox_queue.Queue(path, durability=DURABILITY[sync], busy_timeout=BUSY_SECONDS)

    def put(self, document: Document) -> None:
        self.queue.enqueue(document)

    def put_many(self, documents: Sequence[Document]) -> None:
        self.queue.enqueue_many(documents)

    def claim(self) -> Claimed | None:
        item = self.queue.claim()
        return None if item is None else Claimed(item.content, item)

    def finish(self, receipt: Any) -> None:
        if not self.queue.mark_done(receipt):
            raise BrokenError(f"item {receipt.id} was lost while it was held")

    def drain(self, handler: Callable[[Document], object]) -> None:
        self.queue.drain(lambda item: handler(item.content))

    def work(self, handler: Callable[[Document], object], goes_on: Callable[[], bool]) -> None:
        def handle(item: Any) -> None:
            handler(item.content)
            if not goes_on():
                self.queue.stop()

        self.queue.work(handle)

    def wait(self, seconds: float) -> Claimed | None:
        item = self.queue.claim(wait=seconds)
        return None if item is None else Claimed(item.content, item)

    def close(self) -> None:
        self.queue.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        kind = "text" if isinstance(document, str) else "json"
        if finished:
            return (to_text(document), kind, "done", 1, "2026-01-01 00:00:00.000")
        return (to_text(document), kind, "pending", 0, None)


class MemboxRemoving(Membox):
    """The fair opponent of libraries that delete: a done item is removed in the transaction of its end."""

    name = "membox_queue, keep_for=0"
    notes = ("a done item is removed in the transaction of its end",)
    census_sql = "SELECT sum(status = 'pending'), sum(status = 'processing'), NULL FROM ingest_queue"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        super().__init__(folder, sync, threads=threads)
        self.queue.configure(keep_for=0)


LIBRARY = Membox
REMOVING = MemboxRemoving
