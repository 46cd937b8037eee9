"""persist-queue: its SQLite queue with acknowledgements."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import persistqueue
from persistqueue.serializers import pickle

from compare.adapter import BUSY_SECONDS, Adapter, Claimed, Sync, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from compare.documents import Document

READY, ACKED = 0, 5


class PersistQueue(Adapter):
    name = "persist-queue"
    distribution = "persist-queue"
    notes = (
        "`SQLiteAckQueue`; synchronous is set on its private connections, there is no option for it",
        "a claim is a SELECT and, in another transaction, an UPDATE: processes can take the same item",
        "items are pickled",
    )
    file_name = "data.db"
    seed_sql = "INSERT INTO ack_queue_default (data, timestamp, status) VALUES (?, ?, ?)"
    census_sql = "SELECT sum(status < 2), sum(status = 2), coalesce(sum(status = 5), 0) FROM ack_queue_default"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.queue = persistqueue.SQLiteAckQueue(str(folder), multithreading=threads, timeout=BUSY_SECONDS)
        connections: set[Any] = {self.queue._getter, self.queue._putter}
        for connection in connections:
            connection.execute(f"PRAGMA synchronous = {sync}")

    def put(self, document: Document) -> None:
        self.queue.put(document)

    def claim(self) -> Claimed | None:
        try:
            item = self.queue.get(block=False, raw=True)
        except persistqueue.Empty:
            return None
        return Claimed(item["data"], item["pqid"])

    def finish(self, receipt: Any) -> None:
        self.queue.ack(id=receipt)

    def wait(self, seconds: float) -> Claimed | None:
        raise UnsupportedError("waits for an event of its own process; another's put is seen after up to 10 s")

    def close(self) -> None:
        self.queue.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        return (pickle.dumps(document), time.time(), ACKED if finished else READY)


LIBRARY = PersistQueue
