"""The standard library's sqlite3 with membox's own statements: the base of every ratio."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from compare.adapter import BUSY_SECONDS, Adapter, Claimed, Sync
from compare.documents import Document, from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS ingest_queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, project TEXT, source_path TEXT, doc_date TEXT,
    status TEXT NOT NULL DEFAULT 'pending', retries INTEGER NOT NULL DEFAULT 0, error TEXT,
    enqueued_at TEXT NOT NULL DEFAULT (datetime('now')), started_at TEXT, finished_at TEXT
);
CREATE INDEX IF NOT EXISTS idx_ingest_queue_status ON ingest_queue (status);
"""
PUT = "INSERT INTO ingest_queue (content, project, source_path, doc_date) VALUES (?, ?, ?, ?)"
CLAIM = """
UPDATE ingest_queue SET status = 'processing', started_at = datetime('now')
 WHERE id = (SELECT id FROM ingest_queue WHERE status = 'pending' ORDER BY id LIMIT 1)
RETURNING id, content, project, source_path, doc_date, retries
"""
DONE = "UPDATE ingest_queue SET status = 'done', error = NULL, finished_at = datetime('now') WHERE id = ?"


class Stdlib(Adapter):
    name = "sqlite3"
    notes = (
        "membox's table, index and statements, each verb in a `BEGIN IMMEDIATE` of its own; no leases and no receipts",
    )
    one_per_thread = True
    seed_sql = "INSERT INTO ingest_queue (content, status, finished_at) VALUES (?, ?, ?)"
    census_sql = (
        "SELECT sum(status = 'pending'), sum(status = 'processing'), coalesce(sum(status = 'done'), 0) "
        "FROM ingest_queue"
    )

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.connection = sqlite3.connect(folder / self.file_name, timeout=BUSY_SECONDS, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(f"PRAGMA synchronous = {sync}")
        self.connection.executescript(SCHEMA)

    def put(self, document: Document) -> None:
        self.put_many([document])

    def put_many(self, documents: Sequence[Document]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        for document in documents:
            self.connection.execute(PUT, (to_text(document), None, None, None))
        self.connection.execute("COMMIT")

    def claim(self) -> Claimed | None:
        self.connection.execute("BEGIN IMMEDIATE")
        row = self.connection.execute(CLAIM).fetchone()
        self.connection.execute("COMMIT")
        return None if row is None else Claimed(from_text(row[1]), row[0])

    def finish(self, receipt: Any) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(DONE, (receipt,))
        self.connection.execute("COMMIT")

    def close(self) -> None:
        self.connection.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        return (to_text(document), "done" if finished else "pending", "2026-01-01 00:00:00" if finished else None)


LIBRARY = Stdlib
