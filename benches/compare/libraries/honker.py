"""honker: a Rust core with wake-ups, in WAL mode at synchronous=NORMAL."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import honker

from compare.adapter import Adapter, BrokenError, Claimed, Sync, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from compare.documents import Document

QUEUE = "documents"
WORKER = "bench"


class Honker(Adapter):
    name = "honker"
    distribution = "honker"
    notes = (
        "its one writing connection stays at synchronous=NORMAL: every statement runs inside a transaction, where the "
        "setting cannot be changed; not measured at FULL",
        "deletes finished items, so no claim stands behind them",
        "each put also writes a notification row, which stays until it is pruned",
    )
    # Its errors are RuntimeErrors that carry SQLite's text.
    busy_errors = (RuntimeError,)
    seed_sql = "INSERT INTO _honker_live (queue, payload, max_attempts) VALUES (?, ?, 3)"
    census_sql = "SELECT sum(state = 'pending'), sum(state = 'processing'), NULL FROM _honker_live"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        if sync != "NORMAL":
            raise UnsupportedError("synchronous cannot be set; it stays at NORMAL")
        self.database = honker.open(str(folder / self.file_name))
        self.queue = self.database.queue(QUEUE)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.jobs: AsyncIterator[Any] | None = None

    def put(self, document: Document) -> None:
        self.queue.enqueue(document)

    def put_many(self, documents: Sequence[Document]) -> None:
        with self.database.transaction() as transaction:
            for document in documents:
                self.queue.enqueue(document, tx=transaction)

    def claim(self) -> Claimed | None:
        job = self.queue.claim_one(WORKER)
        return None if job is None else Claimed(job.payload, job)

    def finish(self, receipt: Any) -> None:
        if not receipt.ack():
            raise BrokenError(f"item {receipt.id} was lost while it was held")

    def wait(self, seconds: float) -> Claimed | None:
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
        return self.loop.run_until_complete(self._next(seconds))

    async def _next(self, seconds: float) -> Claimed | None:
        if self.jobs is None:
            self.jobs = self.queue.claim(WORKER)
        try:
            job = await asyncio.wait_for(anext(self.jobs), seconds)
        except TimeoutError:
            # A cancelled iterator has ended its subscription and cannot be used again.
            self.jobs = None
            return None
        return Claimed(job.payload, job)

    def close(self) -> None:
        self.jobs = None
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):
                self.loop.close()
        self.database.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        if finished:
            raise UnsupportedError("finished items are deleted")
        return (QUEUE, json.dumps(document))


LIBRARY = Honker
