"""litequeue: one Python file over sqlite3."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import litequeue

from compare.adapter import BUSY_SECONDS, Adapter, Claimed, Sync
from compare.documents import Document, from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class LiteQueue(Adapter):
    name = "litequeue"
    distribution = "litequeue"
    notes = (
        "synchronous is set on its `conn`, the library itself always takes NORMAL",
        "no lease: an item whose worker died stays locked until somebody calls `retry`",
    )
    one_per_thread = True
    seed_sql = "INSERT INTO Queue (data, message_id, status, in_time, done_time) VALUES (?, ?, ?, ?, ?)"
    census_sql = "SELECT sum(status = 0), sum(status = 1), coalesce(sum(status = 2), 0) FROM Queue"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.queue = litequeue.LiteQueue(folder / self.file_name, timeout=BUSY_SECONDS)
        self.queue.conn.execute(f"PRAGMA synchronous = {sync}")

    def put(self, document: Document) -> None:
        self.queue.put(to_text(document))

    def put_many(self, documents: Sequence[Document]) -> None:
        with self.queue.transaction(mode="IMMEDIATE"):
            for document in documents:
                self.queue.put(to_text(document))

    def claim(self) -> Claimed | None:
        message = self.queue.pop()
        return None if message is None else Claimed(from_text(message.data), message.message_id)

    def finish(self, receipt: Any) -> None:
        self.queue.done(receipt)

    def close(self) -> None:
        self.queue.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        status = litequeue.MessageStatus.DONE if finished else litequeue.MessageStatus.READY
        now = time.time_ns()
        return (to_text(document), litequeue.uuid7(), int(status), now, now if finished else None)


LIBRARY = LiteQueue
