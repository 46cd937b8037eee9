"""`membox_queue.membox` in the place of membox's own queue module: its methods and its dicts."""

import inspect
import threading
from datetime import datetime

import pytest
from membox_queue import NewItem, Queue, Retry
from membox_queue.membox import (
    DEFAULT_LEASE_TTL,
    DEFAULT_MAX_RETRIES,
    QueueItem,
    QueueOps,
    drain_queue,
)

from sqlite.membox_store import Agent, put_lease

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
