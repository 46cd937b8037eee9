"""`membox_queue.membox` in the place of membox's own queue module: its methods, its dicts, its worker."""

import inspect
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from membox_queue import NewItem, Queue, Retry
from membox_queue.errors import SimulatedCrash
from membox_queue.membox import (
    DEFAULT_LEASE_TTL,
    DEFAULT_MAX_RETRIES,
    QueueItem,
    QueueOps,
    drain_queue,
    spawn_worker,
)
from programs import PROGRAMS

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


@pytest.fixture
def make_store(path):
    stores = []

    def make():
        stores.append(Store(path))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()


def put_lease(store, age=0.0, *, pid=999_999, hostname="elsewhere", **more):
    """Write a lease as another membox process would."""
    heartbeat = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    record = json.dumps({"pid": pid, "hostname": hostname, "heartbeat": heartbeat} | more)
    store.sql("INSERT OR REPLACE INTO meta (key, value) VALUES ('worker_lease', ?)", record)


def lease_of(store):
    rows = store.sql("SELECT value FROM meta WHERE key = 'worker_lease'")
    return json.loads(rows[0][0]) if rows else None


# What is exported.


def test_the_signatures_are_memboxs():
    def signature(function):
        return str(inspect.signature(function, eval_str=False)).replace("'", "")

    assert {name: signature(getattr(QueueOps, name)) for name in dir(QueueOps) if not name.startswith("_")} == {
        "enqueue_ingest": "(self, content: str, *, project: str | None = None, source_path: str | None = None, "
        "doc_date: str | None = None) -> int",
        "claim_next_pending": "(self) -> QueueItem | None",
        "mark_done": "(self, queue_id: int) -> None",
        "mark_failed": "(self, queue_id: int, error: str) -> None",
        "retry_failed": "(self, max_retries: int = 3) -> int",
        "queue_counts": "(self) -> dict[str, int]",
        "pending_ingest_count": "(self) -> int",
        "recent_failures": "(self, limit: int = 5) -> list[dict[str, object]]",
        "acquire_worker_lease": "(self, ttl: float = 60.0) -> bool",
        "refresh_worker_lease": "(self) -> None",
        "release_worker_lease": "(self) -> None",
        "worker_is_alive": "(self, ttl: float = 60.0) -> bool",
        "close_queue": "(self) -> None",
    }
    assert signature(drain_queue) == (
        "(agent: Any, *, retry_failed: bool = False, max_retries: int = 3) -> dict[str, int]"
    )
    assert (DEFAULT_LEASE_TTL, DEFAULT_MAX_RETRIES) == (60.0, 3)
    assert list(QueueItem.__annotations__) == ["id", "content", "project", "source_path", "doc_date", "retries"]


# Items.


def test_enqueueing_returns_the_id_and_keeps_what_was_captured(store):
    assert store.enqueue_ingest("hello", project="p", source_path="/x.md", doc_date="2026-06-10") == 1
    assert store.enqueue_ingest("again") == 2
    columns = "content, project, source_path, doc_date, status, retries, error, started_at, finished_at"
    assert store.sql(f"SELECT {columns} FROM ingest_queue") == [
        ("hello", "p", "/x.md", "2026-06-10", "pending", 0, None, None, None),
        ("again", None, None, None, "pending", 0, None, None, None),
    ]


def test_only_text_is_taken(store):
    for content in (None, b"bytes", {"a": 1}):
        with pytest.raises(TypeError, match="content must be str"):
            store.enqueue_ingest(content)
    with pytest.raises(TypeError):
        store.enqueue_ingest("x", "positional")
    assert store.pending_ingest_count() == 0


def test_claiming_takes_the_oldest_and_gives_exactly_memboxs_dict(store):
    store.enqueue_ingest("first", project="p", source_path="/a.md", doc_date="2026-06-10")
    store.enqueue_ingest("second")
    assert store.claim_next_pending() == {
        "id": 1,
        "content": "first",
        "project": "p",
        "source_path": "/a.md",
        "doc_date": "2026-06-10",
        "retries": 0,
    }
    assert store.queue_counts() == {"pending": 1, "processing": 1, "done": 0, "failed": 0}
    assert store.claim_next_pending()["content"] == "second"
    assert store.claim_next_pending() is None


def test_what_was_not_enqueued_as_text_comes_as_the_tables_text(store):
    with Queue(store.db_path) as queue:
        queue.enqueue_many([{"any": ["json", "ü"]}, b"\x00\xff"])
    claimed = [store.claim_next_pending()["content"] for _ in range(2)]
    assert claimed == [content for (content,) in store.sql("SELECT content FROM ingest_queue ORDER BY id")]


def test_marking_records_the_end(store):
    for content in "ab":
        store.enqueue_ingest(content, source_path=f"/{content}.md")
    assert store.mark_done(store.claim_next_pending()["id"]) is None
    assert store.mark_failed(store.claim_next_pending()["id"], "boom: 'quoted'\nsecond line") is None
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 1, "failed": 1}
    [failure] = store.recent_failures()
    finished_at = failure.pop("finished_at")
    assert failure == {"id": 2, "source_path": "/b.md", "error": "boom: 'quoted'\nsecond line", "retries": 1}
    assert store.sql("SELECT finished_at FROM ingest_queue WHERE id = 2")[0][0].startswith(finished_at)
    assert datetime.strptime(finished_at, "%Y-%m-%d %H:%M:%S")


def test_a_row_that_fails_and_then_succeeds_has_no_error_left(store):
    qid = store.enqueue_ingest("a")
    store.claim_next_pending()
    store.mark_failed(qid, "boom")
    assert store.retry_failed() == 1
    assert store.claim_next_pending()["retries"] == 1
    store.mark_done(qid)
    assert store.sql("SELECT status, retries, error FROM ingest_queue") == [("done", 1, None)]


def test_ids_that_this_object_did_not_claim_change_nothing(store, make_store):
    other = make_store()
    qid = store.enqueue_ingest("a")
    for _ in range(2):
        store.mark_done(qid)
        store.mark_failed(12345, "x")
        assert store.queue_counts()["pending"] == 1
    other.claim_next_pending()
    store.mark_done(qid)
    store.mark_failed(qid, "not mine")
    assert store.queue_counts()["processing"] == 1
    other.mark_done(qid)
    other.mark_failed(qid, "twice")
    assert store.queue_counts()["done"] == 1


def test_a_stale_id_changes_nothing(store, make_store):
    other = make_store()
    qid = store.enqueue_ingest("a")
    store.claim_next_pending()
    put_lease(store, age=120)
    assert other.acquire_worker_lease()
    assert other.claim_next_pending()["id"] == qid
    store.mark_failed(qid, "late")
    store.mark_done(qid)
    assert store.queue_counts()["processing"] == 1
    other.mark_done(qid)
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 1, "failed": 0}


def test_the_ceiling_of_retries_is_final(store):
    qid = store.enqueue_ingest("a")
    for failures in range(1, 4):
        assert store.claim_next_pending()["retries"] == failures - 1
        store.mark_failed(qid, "boom")
        assert store.retry_failed() == (failures < 3)
    assert store.claim_next_pending() is None
    store.mark_failed(qid, "boom")
    assert store.retry_failed() == 0
    assert store.retry_failed(3) == 0
    assert store.queue_counts()["failed"] == 1
    assert store.retry_failed(max_retries=4) == 1
    assert store.claim_next_pending()["retries"] == 3


def test_retrying_brings_all_back_that_are_below_the_ceiling(store):
    for content in "abc":
        store.enqueue_ingest(content)
        store.mark_failed(store.claim_next_pending()["id"], content)
    store.sql("UPDATE ingest_queue SET retries = 3 WHERE id = 2")
    assert store.retry_failed() == 2
    assert store.queue_counts() == {"pending": 2, "processing": 0, "done": 0, "failed": 1}
    assert [store.claim_next_pending()["content"] for _ in range(2)] == ["a", "c"]


def test_failures_come_newest_first_and_no_more_than_asked_for(store, fake_clock):
    for number in range(7):
        store.enqueue_ingest(str(number))
    ids = [store.claim_next_pending()["id"] for _ in range(7)]
    for qid in reversed(ids[:6]):
        fake_clock.advance(1)
        store.mark_failed(qid, f"error {qid}")
    store.mark_failed(ids[6], "at the same moment")
    assert [failure["id"] for failure in store.recent_failures()] == [7, 1, 2, 3, 4]
    assert [failure["id"] for failure in store.recent_failures(limit=2)] == [7, 1]
    assert store.recent_failures(0) == []


def test_pending_counts_what_is_being_worked_on_too(store):
    assert store.pending_ingest_count() == 0
    for content in "abc":
        store.enqueue_ingest(content)
    store.mark_done(store.claim_next_pending()["id"])
    store.claim_next_pending()
    assert store.pending_ingest_count() == 2
    assert store.queue_counts() == {"pending": 1, "processing": 1, "done": 1, "failed": 0}


def test_other_queues_of_the_file_and_other_statuses_do_not_show(store):
    with Queue(store.db_path, "mail") as mail, Queue(store.db_path) as queue:
        mail.enqueue("letter")
        queue.cancel(queue.enqueue("never mind"))
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 0, "failed": 0}
    assert store.claim_next_pending() is None


def test_a_claim_is_renewed_until_it_is_marked(store, until):
    def lease():
        return store.sql("SELECT lease_until FROM ingest_queue")[0][0]

    with Queue(store.db_path) as queue:
        queue.configure(lease=1)
    qid = store.enqueue_ingest("slow")
    store.claim_next_pending()
    first = lease()
    second = until(lambda: lease() > first and lease())
    until(lambda: lease() > second)
    store.mark_done(qid)
    assert store.queue_counts()["done"] == 1


def test_threads_that_claim_from_one_store_share_the_items(store):
    for number in range(60):
        store.enqueue_ingest(str(number))
    handled = []

    def serve():
        while item := store.claim_next_pending():
            handled.append(item["content"])
            store.mark_done(item["id"])
        store.connections.close()

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(handled, key=int) == [str(number) for number in range(60)]
    assert store.queue_counts()["done"] == 60


# The worker lease.


def test_a_free_lease_is_taken_and_written_as_membox_writes_it(store):
    assert store.worker_is_alive() is False
    assert store.acquire_worker_lease() is True
    assert store.worker_is_alive() is True
    lease = lease_of(store)
    assert (lease["pid"], lease["hostname"]) == (os.getpid(), socket.gethostname())
    assert abs(datetime.now(UTC) - datetime.fromisoformat(lease["heartbeat"])) < timedelta(seconds=60)


def test_a_live_lease_of_another_process_is_refused(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    put_lease(store)
    before = lease_of(store)
    assert store.acquire_worker_lease() is False
    assert store.worker_is_alive() is True
    assert lease_of(store) == before
    assert store.queue_counts()["processing"] == 1


@pytest.mark.parametrize(
    ("pid", "hostname", "is_mine"),
    [
        (os.getpid(), socket.gethostname(), True),
        (os.getpid(), "elsewhere", False),
        (os.getpid() + 1, socket.gethostname(), False),
        (str(os.getpid()), socket.gethostname(), False),
    ],
    ids=["ours", "another host", "another process", "a pid as text"],
)
def test_a_lease_is_ours_by_process_and_host(store, pid, hostname, is_mine):
    put_lease(store, pid=pid, hostname=hostname)
    assert store.acquire_worker_lease() is is_mine
    put_lease(store, pid=pid, hostname=hostname)
    store.release_worker_lease()
    assert store.worker_is_alive() is not is_mine


def test_a_process_may_acquire_again_what_it_holds(store, make_store):
    assert store.acquire_worker_lease()
    assert store.acquire_worker_lease()
    assert make_store().acquire_worker_lease()


def test_how_long_a_heartbeat_lives_is_for_the_one_who_asks_to_say(store):
    put_lease(store, age=30)
    assert store.worker_is_alive()
    assert store.worker_is_alive(ttl=31 + 60)
    assert not store.worker_is_alive(ttl=29)
    assert not store.worker_is_alive(0)
    assert not store.acquire_worker_lease()
    assert store.acquire_worker_lease(ttl=29)
    assert store.worker_is_alive(ttl=25)


def test_our_own_lease_is_as_old_as_its_heartbeat(store, fake_clock):
    store.acquire_worker_lease(ttl=300)
    fake_clock.advance(59.999)
    assert store.worker_is_alive()
    fake_clock.advance(0.001)
    assert not store.worker_is_alive()
    assert store.worker_is_alive(ttl=300)
    store.refresh_worker_lease()
    assert store.worker_is_alive()


UNREADABLE = ["not json", "[]", '"text"', "{}", '{"pid": 1, "hostname": "x"}', '{"heartbeat": 5}', '{"heartbeat": "?"}']


@pytest.mark.parametrize("value", UNREADABLE)
def test_a_lease_that_cannot_be_read_is_expired(store, value):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    store.sql("INSERT INTO meta (key, value) VALUES ('worker_lease', ?)", value)
    assert store.worker_is_alive() is False
    assert store.acquire_worker_lease() is True
    assert store.queue_counts()["pending"] == 1


@pytest.mark.parametrize("zone", ["+00:00", ""])
def test_a_heartbeat_without_a_zone_is_utc(store, zone):
    heartbeat = (datetime.now(UTC) - timedelta(seconds=30)).replace(tzinfo=None).isoformat() + zone
    put_lease(store, heartbeat=heartbeat)
    assert store.worker_is_alive()
    assert not store.worker_is_alive(ttl=20)


def test_taking_over_an_expired_lease_returns_everything_in_process(store, make_store):
    for content in "abcd":
        store.enqueue_ingest(content)
    store.mark_done(store.claim_next_pending()["id"])
    store.claim_next_pending()
    make_store().claim_next_pending()
    store.sql("UPDATE ingest_queue SET status = 'processing', started_at = datetime('now') WHERE id = 4")
    put_lease(store, age=120)
    assert store.acquire_worker_lease() is True
    assert store.queue_counts() == {"pending": 3, "processing": 0, "done": 1, "failed": 0}
    rows = store.sql("SELECT id, retries, started_at FROM ingest_queue WHERE status = 'pending' ORDER BY id")
    assert rows == [(2, 0, None), (3, 0, None), (4, 0, None)]
    assert [store.claim_next_pending()["id"] for _ in range(3)] == [2, 3, 4]


def test_taking_over_our_own_lease_returns_everything_in_process(store):
    store.enqueue_ingest("a")
    store.acquire_worker_lease()
    store.claim_next_pending()
    assert store.acquire_worker_lease()
    assert store.queue_counts()["pending"] == 1


def test_acquiring_a_free_lease_returns_nothing(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    assert store.acquire_worker_lease()
    assert store.queue_counts()["processing"] == 1


def test_what_was_cancelled_in_process_is_not_brought_back_by_a_takeover(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    with Queue(store.db_path) as queue:
        assert queue.cancel(1)
        put_lease(store, age=120)
        assert store.acquire_worker_lease()
        assert queue.get(1).status == "cancelled"


def test_refreshing_does_not_steal_the_lease_of_another_process(store):
    put_lease(store)
    before = lease_of(store)
    assert store.refresh_worker_lease() is None
    assert lease_of(store) == before


def test_refreshing_writes_a_lease_when_there_is_none(store):
    store.refresh_worker_lease()
    assert store.worker_is_alive()
    store.release_worker_lease()
    assert not store.worker_is_alive()


def test_releasing_deletes_our_lease_and_leaves_that_of_others(store):
    assert store.release_worker_lease() is None
    store.acquire_worker_lease()
    store.release_worker_lease()
    assert lease_of(store) is None
    put_lease(store)
    store.release_worker_lease()
    assert store.worker_is_alive()
    put_lease(store, age=1000)
    store.release_worker_lease()
    assert lease_of(store)["pid"] == 999_999
    store.sql("UPDATE meta SET value = 'rubbish' WHERE key = 'worker_lease'")
    store.release_worker_lease()
    assert lease_of(store) is None


def test_memboxs_own_code_sees_our_lease_and_we_see_its(store):
    store.acquire_worker_lease()
    lease = lease_of(store)
    heartbeat = datetime.fromisoformat(lease["heartbeat"])
    assert heartbeat.tzinfo is not None
    assert lease["pid"] == os.getpid()
    store.sql("DELETE FROM meta WHERE key = 'worker_lease'")
    assert not store.worker_is_alive()


# Draining.


def test_draining_empties_the_queue_and_returns(store):
    agent = Agent(store)
    store.enqueue_ingest("one", project="p", source_path="/a.md", doc_date="2026-06-10")
    store.enqueue_ingest("two")
    assert drain_queue(agent) == {"done": 2, "failed": 0, "retried": 0}
    assert agent.calls == [("one", "/a.md", "p", "/a.md", "2026-06-10"), ("two", "", None, None, None)]
    assert store.pending_ingest_count() == 0
    assert store.sql("SELECT text FROM documents ORDER BY id") == [("one",), ("two",)]
    assert lease_of(store) is None


def test_draining_an_empty_queue_does_nothing(store):
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert lease_of(store) is None


def test_what_is_enqueued_during_a_drain_is_drained_too(store):
    def results(content):
        if content == "first":
            store.enqueue_ingest("second")
        return []

    store.enqueue_ingest("first")
    assert drain_queue(Agent(store, results))["done"] == 2


def test_one_items_exception_is_recorded_as_it_is_and_the_drain_goes_on(store):
    def results(content):
        if content == "bad":
            raise RuntimeError("extraction exploded")
        return [{}]

    for content in ("bad", "good"):
        store.enqueue_ingest(content)
    assert drain_queue(Agent(store, results)) == {"done": 1, "failed": 1, "retried": 0}
    [failure] = store.recent_failures()
    assert (failure["error"], failure["retries"]) == ("extraction exploded", 1)


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([{"error": "first"}, {"error": "second"}], "first"),
        ([{"error": ValueError("an exception")}], "an exception"),
        ([{"error": "first"}, {"triples": 3}], None),
        ([{"triples": 3}], None),
        ([], None),
    ],
)
def test_an_item_fails_when_all_of_its_chunks_failed(store, chunks, error):
    store.enqueue_ingest("a")
    stats = drain_queue(Agent(store, lambda content: chunks))
    assert stats == {"done": int(error is None), "failed": int(error is not None), "retried": 0}
    assert [failure["error"] for failure in store.recent_failures()] == ([error] if error else [])


def test_failed_items_are_retried_on_request_and_below_the_ceiling(store, make_store):
    def broken(content):
        raise RuntimeError("no model")

    store.enqueue_ingest("a")
    drain_queue(Agent(store, broken))
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert drain_queue(Agent(store, broken), retry_failed=True) == {"done": 0, "failed": 1, "retried": 1}
    assert drain_queue(Agent(store), retry_failed=True, max_retries=2) == {"done": 0, "failed": 0, "retried": 0}
    assert drain_queue(Agent(make_store()), retry_failed=True) == {"done": 1, "failed": 0, "retried": 1}
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 1, "failed": 0}


def test_a_drain_beside_a_live_worker_does_nothing(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    store.mark_failed(1, "boom")
    store.enqueue_ingest("b")
    put_lease(store)
    assert drain_queue(Agent(store), retry_failed=True) == {"done": 0, "failed": 0, "retried": 0}
    assert store.queue_counts() == {"pending": 1, "processing": 0, "done": 0, "failed": 1}
    assert lease_of(store)["pid"] == 999_999


def test_a_second_drain_of_the_same_process_does_nothing_meanwhile(store, make_store):
    inner = []

    def results(content):
        other = make_store()
        inner.append(drain_queue(Agent(other)))
        return []

    store.enqueue_ingest("a")
    store.enqueue_ingest("b")
    assert drain_queue(Agent(store, results))["done"] == 2
    assert inner == [{"done": 0, "failed": 0, "retried": 0}] * 2


def test_a_drain_takes_up_what_a_dead_worker_left(store):
    store.enqueue_ingest("interrupted")
    store.claim_next_pending()
    put_lease(store, age=120)
    assert drain_queue(Agent(store)) == {"done": 1, "failed": 0, "retried": 0}
    assert store.pending_ingest_count() == 0


@pytest.mark.parametrize(("interrupt", "retries"), [(KeyboardInterrupt, 0), (SystemExit, 1)])
def test_an_interrupt_propagates_and_leaves_neither_lease_nor_claim(store, interrupt, retries):
    def results(content):
        raise interrupt

    for content in "ab":
        store.enqueue_ingest(content)
    with pytest.raises(interrupt):
        drain_queue(Agent(store, results))
    assert lease_of(store) is None
    assert store.queue_counts() == {"pending": 2, "processing": 0, "done": 0, "failed": 0}
    assert drain_queue(Agent(store)) == {"done": 2, "failed": 0, "retried": 0}
    assert store.sql("SELECT max(retries) FROM ingest_queue") == [(retries,)]


def refuse(self, *_):
    raise LookupError


@pytest.mark.parametrize(
    "error",
    [
        type("PanicException", (BaseException,), {}),
        type("Hostile", (Exception,), {"__str__": refuse, "__class__": property(refuse)}),
        GeneratorExit,
    ],
)
def test_whatever_else_is_raised_fails_the_item_and_the_drain_goes_on(store, error):
    def results(content):
        if content == "bad":
            raise error
        return []

    for content in ("bad", "good"):
        store.enqueue_ingest(content)
    assert drain_queue(Agent(store, results)) == {"done": 1, "failed": 1, "retried": 0}
    [failure] = store.recent_failures()
    assert (error.__name__ in failure["error"], failure["retries"]) == (True, 1)


def test_a_drain_that_crashes_is_recovered_by_the_next_once_its_lease_has_expired(store, membox_faults, fake_clock):
    store.enqueue_ingest("a")
    membox_faults.crash_before("finish")
    with pytest.raises(SimulatedCrash):
        drain_queue(Agent(store))
    assert store.queue_counts()["processing"] == 1
    assert store.worker_is_alive()
    fake_clock.advance(61)
    assert not store.worker_is_alive()
    assert drain_queue(Agent(store))["done"] == 1


def test_the_lease_is_live_while_an_item_is_handled_and_gone_with_the_last(store, make_store):
    seen = []

    def results(content):
        seen.append(make_store().worker_is_alive())
        return []

    store.enqueue_ingest("a")
    drain_queue(Agent(store, results))
    assert seen == [True]
    assert not store.worker_is_alive()


# Beside membox's own connections and statements, in the same process.


def test_memboxs_connections_stay_open_and_write_while_items_are_handled(store):
    for number in range(60):
        store.enqueue_ingest(f"document {number}")
    stop = threading.Event()

    def read_and_write():
        while not stop.is_set():
            with store.connections.transaction() as connection:
                connection.execute("INSERT INTO meta (key, value) VALUES (hex(randomblob(8)), 'x')")
            store.sql("SELECT count(*) FROM documents")
        store.connections.close()

    threads = [threading.Thread(target=read_and_write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert drain_queue(Agent(store))["done"] == 60
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert store.sql("SELECT count(*) FROM documents") == [(60,)]
    assert store.sql("SELECT count(*) FROM ingest_queue WHERE status = 'done'") == [(60,)]
    assert store.sql("PRAGMA integrity_check") == [("ok",)]


def test_memboxs_own_statements_work_on_the_same_file(store):
    """Its insert, claim, marks, retry, counts and reset, as its own module words them."""
    store.enqueue_ingest("ours")
    with store.connections.transaction() as connection:
        connection.execute("INSERT INTO ingest_queue (content, project) VALUES ('theirs', 'p')")
    assert store.claim_next_pending()["content"] == "ours"
    with store.connections.transaction() as connection:
        claim = connection.execute(
            "UPDATE ingest_queue SET status = 'processing', started_at = datetime('now') WHERE id = "
            "(SELECT id FROM ingest_queue WHERE status = 'pending' ORDER BY id LIMIT 1) RETURNING id, content"
        )
        assert claim.fetchone() == (2, "theirs")
    assert store.claim_next_pending() is None
    store.sql("UPDATE ingest_queue SET status = 'done', error = NULL, finished_at = datetime('now') WHERE id = 2")
    assert store.queue_counts() == {"pending": 0, "processing": 1, "done": 1, "failed": 0}
    store.sql("UPDATE ingest_queue SET status = 'pending', started_at = NULL WHERE status = 'processing'")
    store.mark_done(1)
    assert store.queue_counts()["pending"] == 1
    assert store.claim_next_pending()["id"] == 1
    store.sql("UPDATE ingest_queue SET status = 'failed', error = 'theirs', retries = retries + 1 WHERE id = 1")
    store.mark_done(1)
    assert store.recent_failures()[0]["error"] == "theirs"
    store.sql("UPDATE ingest_queue SET status = 'pending' WHERE status = 'failed' AND retries < 3")
    assert store.claim_next_pending()["retries"] == 1
    counts = dict(store.sql("SELECT status, COUNT(*) FROM ingest_queue GROUP BY status"))
    assert counts == {"processing": 1, "done": 1}


def test_the_object_can_be_closed_and_used_again(store):
    store.enqueue_ingest("a")
    store.acquire_worker_lease()
    store.close()
    store.close()
    assert not store.worker_is_alive()
    assert store.claim_next_pending()["content"] == "a"


def test_what_else_the_queue_offers_goes_on_working_beside_it(store):
    store.enqueue_ingest("second")
    with Queue(store.db_path) as queue:
        queue.enqueue_many([NewItem("first", priority=9), NewItem("later", delay=3600)])
        queue.configure(retry=Retry(max=2, base=3600))
    store.close_queue()
    assert store.claim_next_pending()["content"] == "first"
    store.mark_failed(2, "again in an hour")
    assert store.queue_counts() == {"pending": 3, "processing": 0, "done": 0, "failed": 0}


# Other processes.


def test_a_killed_worker_is_replaced_at_once_and_its_item_counted_as_lost(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    assert store.worker_is_alive()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    worker.kill()
    worker.wait()
    assert not store.worker_is_alive()
    assert drain_queue(Agent(store)) == {"done": 1, "failed": 0, "retried": 0}
    assert store.sql("SELECT retries FROM ingest_queue") == [(1,)]


def test_a_document_that_kills_its_workers_ends_as_failed(store, start):
    store.enqueue_ingest("hang")
    for _ in range(3):
        worker = start(PROGRAMS / "membox_worker.py", store.db_path)
        assert worker.stdout.readline() == "begun hang\n"
        worker.kill()
        worker.wait()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert "vanished" in store.recent_failures()[0]["error"]


def test_what_a_killed_worker_held_is_judged_by_what_others_have_configured_since(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    with Queue(store.db_path) as other:
        other.configure(max_retries=1)
    worker.kill()
    worker.wait()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 0, "failed": 1}


def test_ctrl_c_ends_a_worker_that_is_handling_an_item(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    worker.send_signal(signal.SIGINT)
    assert worker.wait(60) != 0
    assert lease_of(store) is None
    assert store.queue_counts() == {"pending": 1, "processing": 0, "done": 0, "failed": 0}


def test_a_worker_is_spawned_once_as_membox_process(store, tmp_path, until, monkeypatch):
    package = tmp_path / "site" / "membox"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        (PROGRAMS / "membox_worker.py").read_text().replace("sys.argv[1]", "sys.argv[sys.argv.index('--db') + 1]")
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    store.enqueue_ingest("a")
    assert spawn_worker(store.db_path) is True
    until(lambda: store.queue_counts()["done"])
    until(lambda: "ended" in (tmp_path / "memory.db.worker.log").read_text())
    put_lease(store)
    assert spawn_worker(store.db_path) is False


def test_spawners_at_the_same_moment_start_one_worker(store, tmp_path, until):
    program = tmp_path / "worker.py"
    shutil.copy(PROGRAMS / "membox_worker.py", program)
    store.enqueue_ingest("hang")
    started = tmp_path / "started"
    command = ["/bin/sh", "-c", f"echo $$ >> {started}; exec sleep 60"]
    try:
        assert [spawn_worker(store.db_path, command=command) for _ in range(5)] == [True] + [False] * 4
        until(lambda: started.exists() and started.read_text().endswith("\n"))
        assert len(started.read_text().split()) == 1
    finally:
        for pid in started.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_a_worker_needs_a_file():
    with pytest.raises(ValueError, match="in-memory"):
        spawn_worker(":memory:")


def test_importing_the_module_does_not_import_the_command_line():
    program = "import sys, membox_queue.membox; print('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
