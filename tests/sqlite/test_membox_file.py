"""A file made by membox: extended in place, every row kept, and membox's own statements go on working."""

import json
import sqlite3
import threading
from datetime import timedelta

import pytest
from membox_queue import CorruptDatabaseError, DrainReport, Queue, QueueError, SchemaVersionError, StorageError
from programs import PROGRAMS

COLUMNS = "id, content, project, source_path, doc_date, status, retries, error, enqueued_at, started_at, finished_at"

MEMBOX = """
CREATE TABLE ingest_queue (id INTEGER PRIMARY KEY, content TEXT NOT NULL, project TEXT, source_path TEXT, doc_date TEXT,
  status TEXT NOT NULL DEFAULT 'pending', retries INTEGER NOT NULL DEFAULT 0, error TEXT,
  enqueued_at TEXT NOT NULL DEFAULT (datetime('now')), started_at TEXT, finished_at TEXT);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

ROWS = """
INSERT INTO ingest_queue (id, content, project, source_path, doc_date, status, retries, error, started_at, finished_at)
VALUES (1, 'waits', 'p', '/n/a.md', '2026-06-14', 'pending', 0, NULL, NULL, NULL),
       (2, 'begun', 'p', NULL, NULL, 'processing', 0, NULL, '2026-06-14 10:00:00', NULL),
       (3, 'ended', NULL, NULL, NULL, 'done', 1, NULL, '2026-06-14 10:00:00', '2026-06-14 10:00:30'),
       (4, 'broke', NULL, NULL, NULL, 'failed', 2, 'boom', '2026-06-14 10:00:00', '2026-06-14 10:00:30'),
       (9, 'wrong', NULL, NULL, NULL, 'failed', 3, 'boom', '2026-06-14 10:00:00', '2026-06-14 10:00:40');
CREATE INDEX idx_ingest_queue_status ON ingest_queue (status);
CREATE TABLE triples (id INTEGER PRIMARY KEY, subject TEXT, object TEXT REFERENCES triples (id));
INSERT INTO triples (subject) VALUES ('a'), ('b');
INSERT INTO meta (key, value) VALUES ('embedding_model', 'small');
PRAGMA user_version = 4;
"""


def make(path, *scripts):
    """Build a file by SQL, before any queue of this process has it open."""
    connection = sqlite3.connect(path)
    for script in scripts:
        connection.executescript(script)
    connection.close()


@pytest.fixture(params=["INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT"])
def membox(request, path):
    make(path, MEMBOX.replace("id INTEGER PRIMARY KEY", f"id {request.param}"), ROWS)
    return path


def test_every_row_and_everything_around_the_table_is_kept(membox, sql):
    looks = (
        f"SELECT {COLUMNS} FROM ingest_queue",
        "SELECT * FROM triples",
        "SELECT * FROM meta",
    )
    before = [sql(membox, look) for look in looks]
    Queue(membox).close()
    assert [sql(membox, look) for look in looks] == before
    assert sql(membox, "PRAGMA user_version") == [[4]]
    assert sql(membox, "PRAGMA integrity_check") == [["ok"]]


def test_opening_again_changes_nothing_more(membox, sql):
    Queue(membox).close()
    before = membox.read_bytes()
    with Queue(membox) as queue:
        assert len(queue.items()) == 5
    assert membox.read_bytes() == before


def test_its_rows_are_items_of_the_default_queue(membox):
    with Queue(membox) as queue:
        assert [item.status for item in queue.items()] == ["pending", "processing", "done", "failed", "failed"]
        assert [item.id for item in queue.failures()] == [9, 4]
        waiting = queue.get(1)
        assert (waiting.project, waiting.source_path, waiting.doc_date) == ("p", "/n/a.md", "2026-06-14")
        assert queue.get(3).finished_at - queue.get(3).started_at == timedelta(seconds=30)
        assert queue.retry_failed() == 1
        contents = set()
        assert queue.drain(lambda item: contents.add(item.content)) == DrainReport(done=3)
        assert contents == {"waits", "begun", "broke"}
        assert queue.enqueue("new") == 10


def test_a_row_left_in_process_comes_back_once_it_is_older_than_the_lease(path, clock, sql):
    make(path, MEMBOX)
    with Queue(path, lease=60) as queue:
        started = clock.now.strftime("%Y-%m-%d %H:%M:%S")
        sql(path, "INSERT INTO ingest_queue (content, status, started_at) VALUES ('begun', 'processing', ?)", started)
        clock.advance(59)
        assert queue.claim() is None
        clock.advance(1)
        item = queue.claim()
        assert (item.content, item.retries, item.attempt) == ("begun", 1, 1)
        assert "vanished" in item.error


@pytest.mark.parametrize("started", [None, "", "yesterday"])
def test_a_row_taken_without_a_time_is_respected_for_one_lease_from_the_first_look(path, clock, sql, started):
    make(path, MEMBOX)
    with Queue(path, lease=60) as queue:
        sql(path, "INSERT INTO ingest_queue (content, status, started_at) VALUES ('begun', 'processing', ?)", started)
        clock.advance(3600)
        assert queue.claim() is None
        for _ in range(3):
            clock.advance(19)
            assert queue.claim() is None
        assert queue.check()["stuck"] == []
        clock.advance(3)
        assert queue.check()["stuck"] == [1]
        item = queue.claim()
        assert (item.content, item.retries, item.attempt) == ("begun", 1, 1)


def test_a_row_taken_without_a_time_for_the_second_time_is_respected_again(path, clock, sql):
    with Queue(path, lease=60) as queue:
        queue.enqueue("x")
        for _ in range(2):
            sql(path, "UPDATE ingest_queue SET status = 'processing'")
            assert queue.claim() is None
            clock.advance(59)
            assert queue.claim() is None
            sql(path, "UPDATE ingest_queue SET status = 'pending'")
            clock.advance(3600)


def test_more_rows_taken_without_a_time_than_are_looked_at_at_once_are_all_respected(path, clock, sql):
    with Queue(path, lease=60) as queue:
        queue.enqueue_many("x" for _ in range(100))
        sql(path, "UPDATE ingest_queue SET status = 'processing'")
        assert queue.claim() is None
        clock.advance(61)
        assert len(queue.claim_many(200)) + len(queue.claim_many(200)) > 0
        while queue.claim_many(200):
            pass
        assert queue.counts()["pending"] == 0


def test_memboxs_insert_is_an_enqueue(membox, sql):
    with Queue(membox) as queue:
        [[qid]] = sql(
            membox,
            "INSERT INTO ingest_queue (content, project, source_path, doc_date) VALUES (?, ?, ?, ?) RETURNING id",
            *("text", "p", "/x.md", "2026-06-15"),
        )
        item = queue.get(qid)
        assert (item.content, item.project, item.queue, item.status) == ("text", "p", "ingest", "pending")
        assert qid in {item.id for item in queue.claim_many(10)}


def test_memboxs_claim_takes_a_row_that_we_then_leave_alone(membox, sql):
    with Queue(membox) as queue:
        [[qid, content]] = sql(
            membox,
            "UPDATE ingest_queue SET status = 'processing', started_at = datetime('now') WHERE id = "
            "(SELECT id FROM ingest_queue WHERE status = 'pending' ORDER BY id LIMIT 1) RETURNING id, content",
        )
        assert (qid, content) == (1, "waits")
        assert [item.id for item in queue.claim_many(10)] == [2]
        sql(membox, "UPDATE ingest_queue SET status = 'done', error = NULL, finished_at = datetime('now') WHERE id = 1")
        assert queue.get(1).status == "done"


def test_memboxs_reset_gives_back_our_rows_too_and_our_receipt_is_void(membox, sql):
    with Queue(membox) as queue:
        ours = queue.claim()
        sql(membox, "UPDATE ingest_queue SET status = 'pending', started_at = NULL WHERE status = 'processing'")
        back = queue.get(ours.id)
        assert (back.status, back.worker, back.lease_until, back.started_at) == ("pending", None, None, None)
        assert not queue.mark_done(ours)
        again = queue.claim()
        assert (again.id, again.attempt) == (ours.id, ours.attempt + 1)


def test_a_row_that_membox_finished_is_lost_to_us(membox, sql):
    with Queue(membox) as queue:
        ours = queue.claim()
        sql(membox, "UPDATE ingest_queue SET status = 'done', error = NULL WHERE id = ?", ours.id)
        assert ours.lost
        assert not queue.mark_failed(ours, "late")
        assert queue.get(ours.id).status == "done"


def test_a_receipt_does_not_fit_a_new_item_that_got_the_same_id(path):
    make(path, MEMBOX)
    with Queue(path) as queue:
        queue.enqueue("old")
        late = queue.claim()
        queue.delete(1)
        assert queue.enqueue("new") == 1
        assert queue.claim().attempt == late.attempt
        stale = [queue.mark_done(late), queue.mark_failed(late, "x"), queue.extend(late, 9), queue.release(late)]
        assert stale == [False] * 4
        assert (queue.get(1).status, queue.get(1).error) == ("processing", None)


def test_memboxs_retry_of_failed_rows_is_claimed(membox, sql):
    with Queue(membox) as queue:
        queue.mark_failed(queue.claim(), "boom")
        sql(membox, "UPDATE ingest_queue SET status = 'pending' WHERE status = 'failed' AND retries < 3")
        assert {item.content for item in queue.claim_many(10)} == {"waits", "begun", "broke"}


def test_memboxs_counts_see_our_items(membox, sql):
    with Queue(membox) as queue:
        queue.enqueue_many(["a", "b"])
        queue.claim()
        counts = dict(sql(membox, "SELECT status, count(*) FROM ingest_queue GROUP BY status"))
        assert counts == {"pending": 3, "processing": 1, "done": 1, "failed": 2}
        assert counts.items() <= queue.counts().items()


def test_a_file_of_a_newer_schema_is_refused_untouched(path, sql):
    Queue(path).close()
    sql(path, "UPDATE membox_queue_meta SET value = '999' WHERE key = 'schema_version'")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match=r"999.*upgrade membox_queue"):
        Queue(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


OTHER_SHAPES = {
    "other columns": "CREATE TABLE ingest_queue (id INTEGER PRIMARY KEY, url TEXT)",
    "no primary key": f"CREATE TABLE ingest_queue ({COLUMNS})",
    "a text id": MEMBOX.replace("id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY"),
    "no rowid": MEMBOX.replace("finished_at TEXT);", "finished_at TEXT) WITHOUT ROWID;"),
    "a nullable status": MEMBOX.replace("NOT NULL DEFAULT 'pending'", ""),
    "one more thing to say": MEMBOX.replace("error TEXT", "error TEXT, tenant TEXT NOT NULL"),
    "a view": "CREATE TABLE documents (id); CREATE VIEW ingest_queue AS SELECT id FROM documents",
}


@pytest.mark.parametrize("shape", OTHER_SHAPES)
def test_a_table_of_another_shape_is_refused_and_stays_as_it_is(path, sql, shape):
    make(path, OTHER_SHAPES[shape])
    before = sql(path, "SELECT * FROM sqlite_schema")
    with pytest.raises(QueueError, match="ingest_queue"):
        Queue(path)
    assert sql(path, "SELECT * FROM sqlite_schema") == before


def test_a_file_refused_for_its_table_keeps_its_journal_mode(path):
    make(path, OTHER_SHAPES["other columns"])
    before = path.read_bytes()
    with pytest.raises(QueueError):
        Queue(path)
    assert path.read_bytes() == before


OTHER_METAS = {
    "other columns": "CREATE TABLE meta (name TEXT, version INTEGER)",
    "one more thing to say": "CREATE TABLE meta (key TEXT, value TEXT, at TEXT NOT NULL)",
    "numbered keys": "CREATE TABLE meta (key INTEGER PRIMARY KEY, value TEXT)",
    "strict numbers": "CREATE TABLE meta (key TEXT, value INTEGER) STRICT",
    "a view": "CREATE VIEW meta AS SELECT 'version' AS key, '1' AS value",
}


@pytest.mark.parametrize("shape", OTHER_METAS)
def test_beside_an_application_meta_of_another_shape_the_lease_goes_into_our_own(path, sql, shape):
    make(path, OTHER_METAS[shape])
    with Queue(path) as queue, Queue(path) as other:
        queue.enqueue("x")
        assert queue.acquire_worker_lease()
        [[lease]] = sql(path, "SELECT value FROM membox_queue_meta WHERE key = 'worker_lease'")
        assert json.loads(lease)["owner"]
        assert other.worker_is_alive()
        assert other.drain(lambda item: None).refused
        assert queue.release_worker_lease()
        assert other.drain(lambda item: None) == DrainReport(done=1)
    assert sql(path, "SELECT count(*) FROM meta") == [[shape == "a view"]]
    Queue(path).close()


def test_a_meta_without_a_unique_key_holds_one_lease(path, sql):
    make(path, MEMBOX.replace("key TEXT PRIMARY KEY, value TEXT NOT NULL", "key TEXT, value TEXT"))
    with Queue(path) as queue:
        queue.acquire_worker_lease()
        assert queue.refresh_worker_lease()
        assert sql(path, "SELECT count(*) FROM meta WHERE key = 'worker_lease'") == [[1]]


def test_processes_that_open_the_same_new_file_at_the_same_moment_all_succeed(tmp_path, start):
    processes = [start(PROGRAMS / "open_on_demand.py") for _ in range(3)]
    assert {process.stdout.readline() for process in processes} == {"ready\n"}
    for number in range(30):
        path = tmp_path / f"{number}.db"
        if number % 2:
            make(path, MEMBOX)
        for process in processes:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
        assert sorted(process.stdout.readline() for process in processes) == ["1\n", "2\n", "3\n"]


def test_threads_that_open_the_same_new_file_at_the_same_moment_share_it(path):
    barrier, ids = threading.Barrier(8), []

    def enqueue():
        barrier.wait()
        with Queue(path) as queue:
            ids.append(queue.enqueue("x"))

    threads = [threading.Thread(target=enqueue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(ids) == list(range(1, 9))


@pytest.mark.parametrize("version", ["-1", "0", "", "abc"])
def test_a_schema_version_nobody_wrote_is_refused(path, sql, version):
    Queue(path).close()
    sql(path, "UPDATE membox_queue_meta SET value = ? WHERE key = 'schema_version'", version)
    with pytest.raises(CorruptDatabaseError, match="schema_version"):
        Queue(path)


def test_a_view_of_that_name_is_refused_without_a_page_of_sql(path, sql):
    sql(path, "CREATE VIEW ingest_queue AS SELECT 1 AS id")
    with pytest.raises(StorageError, match="it is a view") as refused:
        Queue(path)
    assert "CREATE" not in str(refused.value)
