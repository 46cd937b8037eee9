"""localqueue: a Rust core with leases and receipts."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import localqueue

from compare.adapter import Adapter, Claimed, Sync

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compare.documents import Document

MODES = {"NORMAL": localqueue.DurabilityMode.RELAXED, "FULL": localqueue.DurabilityMode.DURABLE}
READY, ACKED = 0, 2


class LocalQueue(Adapter):
    name = "localqueue"
    distribution = "localqueue"
    notes = ("RELAXED is synchronous=NORMAL and DURABLE is FULL, as its diagnostics say",)
    file_name = "localqueue.db"
    busy_errors = (localqueue.LocalQueueError,)
    seed_sql = (
        "INSERT INTO messages (queue, payload, status, attempts, max_attempts, available_at, created_at, updated_at) "
        "VALUES ('default', ?, ?, ?, 4, ?, ?, ?)"
    )
    census_sql = "SELECT sum(status = 0), sum(status = 1), coalesce(sum(status = 2), 0) FROM messages"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.queue: localqueue.SimpleQueue[Document] = localqueue.SimpleQueue(str(folder), durability=MODES[sync])

    def put(self, document: Document) -> None:
        self.queue.put(document)

    def put_many(self, documents: Sequence[Document]) -> None:
        self.queue.put_many(list(documents))

    def claim(self) -> Claimed | None:
        return self.wait(0)

    def finish(self, receipt: Any) -> None:
        self.queue.ack(receipt)

    def wait(self, seconds: float) -> Claimed | None:
        # block=False would call a busy file an empty queue; a wait of no seconds looks once and waits for writers.
        try:
            job = self.queue.get(block=True, timeout=seconds)
        except localqueue.Empty:
            return None
        return Claimed(job.data, job)

    def close(self) -> None:
        self.queue.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        now = int(time.time() * 1000)
        return (json.dumps(document).encode(), ACKED if finished else READY, int(finished), now, now, now)


LIBRARY = LocalQueue
