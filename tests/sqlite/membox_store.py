"""What stands for membox in the tests of its drop-in: its store, its connections, its agent, its lease."""

import json
import sqlite3
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from membox_queue.membox import QueueOps

TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ingest_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, project TEXT, source_path TEXT, doc_date TEXT,
  status TEXT NOT NULL DEFAULT 'pending', retries INTEGER NOT NULL DEFAULT 0, error TEXT,
  enqueued_at TEXT NOT NULL DEFAULT (datetime('now')), started_at TEXT, finished_at TEXT);
CREATE INDEX IF NOT EXISTS idx_ingest_queue_status ON ingest_queue (status);
CREATE TABLE IF NOT EXISTS documents (id INTEGER PRIMARY KEY, text TEXT, source_path TEXT);
"""


class Connections:
    """A connection a thread, as membox keeps them open beside the queue."""

    def __init__(self, path):
        self.path = path
        self.local = threading.local()

    def connection(self):
        if not hasattr(self.local, "connection"):
            connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
            for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=NORMAL"):
                connection.execute(f"PRAGMA {pragma}")
            self.local.connection = connection
        return self.local.connection

    @contextmanager
    def transaction(self):
        connection = self.connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except Exception:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def close(self):
        if hasattr(self.local, "connection"):
            self.local.connection.close()
            del self.local.connection


class Store(QueueOps):
    """Stands for membox's store: its own tables, its own connections, and the drop-in."""

    def __init__(self, db_path):
        self.db_path = str(db_path)
        self.connections = Connections(self.db_path)
        self.connections.connection().executescript(TABLES)

    def sql(self, statement, *values):
        return self.connections.connection().execute(statement, values).fetchall()

    def close(self):
        self.close_queue()
        self.connections.close()


class Agent:
    """Stands for membox's agent: takes a document in and writes it to its own table."""

    def __init__(self, store, results=None):
        self.store = store
        self.results = results or (lambda content: [{"chunk": 0}])
        self.calls = []

    def ingest_content(self, content, *, source="", project=None, source_path=None, doc_date=None):
        self.calls.append((content, source, project, source_path, doc_date))
        results = self.results(content)
        with self.store.connections.transaction() as connection:
            connection.execute("INSERT INTO documents (text, source_path) VALUES (?, ?)", (content, source_path))
        return results


def put_lease(store, age=0.0, *, pid=999_999, hostname="elsewhere", **more):
    """Write a lease as another membox process would."""
    heartbeat = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    record = json.dumps({"pid": pid, "hostname": hostname, "heartbeat": heartbeat} | more)
    store.sql("INSERT OR REPLACE INTO meta (key, value) VALUES ('worker_lease', ?)", record)


def lease_of(store):
    rows = store.sql("SELECT value FROM meta WHERE key = 'worker_lease'")
    return json.loads(rows[0][0]) if rows else None
