"""Files: what may be opened, what is never written to, and rows that other programs wrote."""

import os
import sqlite3
import subprocess

import pytest
from membox_queue import (
    CorruptDatabaseError,
    DrainReport,
    NewItem,
    NotADatabaseError,
    PayloadTooLargeError,
    Queue,
    Rate,
    ReadOnlyError,
    StorageError,
)

from sqlite.test_membox_file import MEMBOX

NO_DATABASES = {
    "a byte": b"x",
    "a line": b"hello\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50,
    "zeros": bytes(8192),
    "a good beginning": b"SQLite format 3\0" + b"\xff" * 8192,
    "nothing but a good beginning": b"SQLite format 3\0",
}


@pytest.mark.parametrize("case", NO_DATABASES)
def test_a_file_that_is_not_a_database_is_never_written_to(path, case):
    path.write_bytes(NO_DATABASES[case])
    with pytest.raises(NotADatabaseError, match=path.name):
        Queue(path)
    assert path.read_bytes() == NO_DATABASES[case]
    assert os.listdir(path.parent) == [path.name]


def test_an_empty_file_becomes_a_queue(path):
    path.touch()
    with Queue(path) as queue:
        assert queue.enqueue("x") == 1


def test_an_empty_file_whose_log_is_not_is_refused_and_the_log_kept(path, tmp_path):
    with Queue(path) as queue:
        queue.enqueue("acknowledged")
        log = path.with_name(path.name + "-wal").read_bytes()
    copy = tmp_path / "copy.db"
    copy.touch()
    copy.with_name("copy.db-wal").write_bytes(log)
    with pytest.raises(CorruptDatabaseError, match=r"empty.*-wal"):
        Queue(copy)
    assert copy.with_name("copy.db-wal").read_bytes() == log
    assert copy.read_bytes() == b""


def test_a_missing_file_whose_log_is_there_is_refused_and_the_log_kept(path, tmp_path):
    with Queue(path) as queue:
        queue.enqueue("acknowledged")
        log = path.with_name(path.name + "-wal").read_bytes()
    left = tmp_path / "copy.db-wal"
    left.write_bytes(log)
    with pytest.raises(
        StorageError, match=r"copy\.db: the file is missing, but its log.*Put it back.*move the log away"
    ):
        Queue(tmp_path / "copy.db")
    assert left.read_bytes() == log
    assert not (tmp_path / "copy.db").exists()
    left.rename(tmp_path / "kept")
    with Queue(tmp_path / "copy.db") as queue:
        assert queue.enqueue("x") == 1


def test_a_file_that_was_moved_from_under_an_open_queue_keeps_what_is_in_its_log(path, tmp_path, sql, start):
    with Queue(path) as queue:
        queue.enqueue_many(["a", "b"])
        path.rename(tmp_path / "moved.db")
        program = "import sys; from membox_queue import Queue; Queue(sys.argv[1])"
        other = start(program, path, stderr=subprocess.PIPE)
        assert "Put it back beside its log" in other.communicate(timeout=30)[1]
        (tmp_path / "moved.db").rename(path)
        assert queue.enqueue("c") == 3
    with Queue(path) as queue:
        assert [item.content for item in queue.items()] == ["a", "b", "c"]


def test_an_empty_log_does_not_keep_a_new_file_from_being_made(path):
    path.with_name(path.name + "-wal").touch()
    with Queue(path) as queue:
        assert queue.enqueue("x") == 1


@pytest.fixture
def pages(path):
    """The bytes of a closed file with many items; its first page holds the schema."""
    with Queue(path) as queue:
        queue.enqueue_many(["x" * 1000] * 200)
    return path.read_bytes()


@pytest.mark.parametrize("damage", ["schema", "tables", "truncated"])
def test_a_damaged_file_is_refused_and_left_as_it_is(path, pages, damage):
    path.write_bytes(
        {
            "schema": pages[:100] + b"\xff" * 3996 + pages[4096:],
            "tables": pages[:4096] + b"\xa5" * (len(pages) - 4096),
            "truncated": pages[: 4096 * 20],
        }[damage]
    )
    before = path.read_bytes()
    with pytest.raises(CorruptDatabaseError, match=r"memory\.db.*restore a backup"):
        Queue(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_damage_found_later_is_said_and_not_made_worse(path, pages):
    path.write_bytes(pages[: 4096 * 40] + b"\xa5" * (len(pages) - 4096 * 40))
    before = path.read_bytes()
    with Queue(path) as queue, pytest.raises(CorruptDatabaseError):
        queue.items(limit=200)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("directory", [0o555, 0o755])
def test_a_file_without_permission_to_write_is_refused(path, directory):
    Queue(path).close()
    path.chmod(0o444)
    path.parent.chmod(directory)
    try:
        with pytest.raises(ReadOnlyError):
            Queue(path)
        assert os.listdir(path.parent) == [path.name]
    finally:
        path.parent.chmod(0o755)


def test_a_missing_directory_is_said_and_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first") as raised:
        Queue(tmp_path / "nowhere" / "memory.db")
    assert isinstance(raised.value, StorageError)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["file:memory.db", "FILE:memory.db", "file:memory.db?nolock=1", "file::memory:"])
def test_a_uri_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="plain path"):
        Queue(name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a?mode=ro&cache=shared#x%20.db", "ü ß\n'\".db", os.fsdecode(b"\xff.db")])
def test_any_name_of_a_file_is_only_a_name(tmp_path, name):
    with Queue(tmp_path / name) as queue:
        queue.enqueue("x")
        assert queue.path == tmp_path / name
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_names_of_files_beside_a_database_are_refused(tmp_path, suffix):
    with pytest.raises(ValueError, match="choose another"):
        Queue(tmp_path / f"a{suffix}")
    assert os.listdir(tmp_path) == []


def test_a_directory_an_empty_path_and_a_nul_are_refused(tmp_path):
    for path in (tmp_path, "", "a\0b"):
        with pytest.raises(ValueError, match=r"directory|empty|NUL"):
            Queue(path)
    assert os.listdir(tmp_path) == []


def test_a_path_may_be_any_path_object(path):
    class Named:
        def __fspath__(self):
            return str(path)

    with Queue(Named()) as queue:
        queue.enqueue("x")
        assert queue.path == path
    assert path.exists()


@pytest.mark.parametrize("made_first", [True, False])
def test_a_link_to_a_file_is_the_same_queue(tmp_path, path, made_first):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    if made_first:
        Queue(path).close()
    with Queue(link) as through_link, Queue(path) as direct:
        direct.enqueue("x")
        item = through_link.claim()
        assert direct.claim() is None
        assert direct.mark_done(item)
        assert through_link.path == path
    assert sorted(os.listdir(tmp_path)) == ["link.db", "memory.db"]


def test_a_file_that_was_replaced_is_opened_anew(path):
    with Queue(path) as old:
        old.enqueue("old")
        for file in path.parent.iterdir():
            file.unlink()
        with Queue(path) as new:
            assert new.claim() is None
            assert new.enqueue("new") == 1
            with pytest.raises(StorageError, match="not acknowledged"):
                old.enqueue("lost")


def test_a_queue_in_memory_is_private_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Queue(":memory:") as queue, Queue(":memory:") as other:
        queue.enqueue("x")
        assert other.claim() is None
        assert queue.drain(lambda item: item.content) == DrainReport(done=1)
        assert queue.get(1).result == "x"
        assert queue.path is None
    assert os.listdir(tmp_path) == []


FITTING = ["x" * 10, "ä" * 5, b"x" * 10, [10000000], {"a": "bb"}]
TOO_LARGE = ["x" * 11, "ä" * 6, b"x" * 11, [100000000], {"a": "bbbb"}]


def test_content_is_limited_by_its_size_in_bytes(path):
    with Queue(path, max_bytes=10) as queue:
        for content in FITTING:
            queue.enqueue(content)
        for content in TOO_LARGE:
            with pytest.raises(PayloadTooLargeError):
                queue.enqueue(content)
            with pytest.raises(PayloadTooLargeError):
                queue.enqueue_many(["x", NewItem(content)])
        with pytest.raises(PayloadTooLargeError):
            queue.enqueue("x", headers={"trace": "0123456789"})
        assert [item.content for item in queue.items()] == FITTING


def test_the_limit_is_64_mebibytes_unless_told(queue):
    with pytest.raises(PayloadTooLargeError, match=str(64 * 2**20)):
        queue.enqueue("x" * (64 * 2**20 + 1))
    assert queue.pending() == 0


@pytest.fixture
def insert(queue, path, sql):
    """Put a row in from another process, with columns as given in SQL; its id."""

    def insert(**columns):
        values = {"content": "'x'"} | columns
        statement = f"INSERT INTO ingest_queue ({', '.join(values)}) VALUES ({', '.join(values.values())}) RETURNING id"
        return sql(path, statement)[0][0]

    return insert


def test_a_plain_insert_of_content_alone_is_an_enqueue(queue, insert):
    qid = insert(content="'from the shell'")
    item = queue.claim()
    assert (item.id, item.content, item.queue, item.attempt, item.retries) == (qid, "from the shell", "ingest", 1, 0)
    assert abs((item.started_at - item.enqueued_at).total_seconds()) < 3600
    assert queue.mark_done(item)


UNREADABLE = {
    "bad JSON": ({"content": "'{oops'", "content_type": "'json'"}, "{oops", "not valid JSON"),
    "NaN": ({"content": "'NaN'", "content_type": "'json'"}, "NaN", "not valid JSON"),
    "bottomless JSON": ({"content": f"'{'[' * 500}'", "content_type": "'json'"}, "[" * 500, "not valid JSON"),
    "half a character": ({"content": r"""'"\ud800"'""", "content_type": "'json'"}, r'"\ud800"', "not valid JSON"),
    "bad base64": ({"content": "'a!b'", "content_type": "'base64'"}, "a!b", "not valid base64"),
    "bad UTF-8": ({"content": "CAST(x'61ff62' AS TEXT)"}, "a\ufffdb", "not valid UTF-8"),
    "another type": ({"content_type": "'pickle'"}, "x", "'pickle' is not text, json or base64"),
    "bad headers": ({"headers": "'[1]'"}, "x", "headers are not a JSON object"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_row_that_cannot_be_read_ends_as_failed_with_its_text_kept(queue, insert, case):
    columns, raw, error = UNREADABLE[case]
    bad = insert(**columns)
    good = queue.enqueue("good")
    assert queue.claim().id == good
    item = queue.get(bad)
    assert (item.status, item.content) == ("failed", raw)
    assert error in item.error
    assert queue.retry_failed() == 0
    assert [failure.id for failure in queue.failures()] == [bad]


def test_rows_that_cannot_be_read_do_not_stop_the_others(queue, path, sql):
    sql(
        path,
        "INSERT INTO ingest_queue (content, content_type) WITH RECURSIVE n (i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT iif(i % 10, '{', '[]'), 'json' FROM n",
    )
    assert [item.id for item in queue.claim_many(4)] == [10, 20, 30, 40]
    assert queue.drain(lambda item: None) == DrainReport(done=6)
    assert queue.counts()["failed"] == 90


@pytest.mark.parametrize(
    ("columns", "content"),
    [
        ({"content": "x'00ff'"}, b"\x00\xff"),
        ({"content": "5"}, "5"),
        ({"content": "'[1]'", "content_type": "'json'", "headers": "'{}'"}, [1]),
        ({"priority": "'high'"}, "x"),
        ({"priority": "1.5"}, "x"),
        ({"retries": "'many'"}, "x"),
        ({"max_retries": "'few'"}, "x"),
        ({"attempt": "'first'"}, "x"),
        ({"attempt": "1.5"}, "x"),
        ({"run_at": "-1"}, "x"),
        ({"run_at": "1.5"}, "x"),
        ({"enqueued_at": "'yesterday'"}, "x"),
        ({"project": "x'ff'", "source_path": "5", "doc_date": "1.5"}, "x"),
        ({"worker": "x'ff'", "claim_token": "'t'", "lease_until": "'soon'"}, "x"),
        ({"error": "5", "result": "'{'"}, "x"),
    ],
)
def test_columns_of_unexpected_types_do_not_stop_an_item(queue, insert, columns, content):
    qid = insert(**columns)
    item = queue.claim()
    assert (item.id, item.content) == (qid, content)
    assert queue.mark_done(item)


@pytest.mark.parametrize("when", ["'2020-01-01'", "x'00'"])
def test_a_due_time_that_is_no_number_does_not_hold_an_item_for_ever(queue, insert, when):
    qid = insert(run_at=when)
    queue.claim()
    assert queue.get(qid).status in ("processing", "failed")


@pytest.mark.parametrize(
    "columns",
    [
        {"lease_until": "1", "retries": "'many'", "max_retries": "'few'", "worker": "x'ff'"},
        {"lease_until": "1", "attempt": "'first'"},
        {"lease_until": "1", "attempt": "1.5"},
        {"lease_until": "1", "claim_token": "'token'"},
        {"lease_until": "'soon'"},
    ],
)
def test_a_claim_of_unexpected_types_comes_back(queue, insert, columns):
    qid = insert(status="'processing'", **columns)
    assert queue.claim().id == qid


def test_many_claims_of_unexpected_types_do_not_keep_a_claim_busy_for_ever(queue, path, sql, start):
    queue.enqueue_many(["x"] * 20)
    sql(path, "UPDATE ingest_queue SET status = 'processing', lease_until = 1, lease_ms = 1, claim_token = 'token'")
    worker = start("import sys, membox_queue; membox_queue.Queue(sys.argv[1]).claim()", path)
    assert worker.wait(5) == 0


DOWN_TO_VERSION_4 = """
DROP TRIGGER ingest_queue_status_insert;
DROP TRIGGER ingest_queue_status_update;
DROP TRIGGER ingest_queue_unclaim;
CREATE TRIGGER ingest_queue_unclaim AFTER UPDATE OF status ON ingest_queue
    WHEN NEW.status = 'pending' AND NEW.claim_token IS NOT NULL
BEGIN
    UPDATE ingest_queue SET claim_token = NULL, lease_until = NULL WHERE id = NEW.id;
END;
UPDATE membox_queue_meta SET value = '4' WHERE key = 'schema_version';
"""

DOWN_TO_VERSION_3 = """
DROP VIEW membox_queue_gone;
DROP VIEW membox_queue_group_moved;
DROP TRIGGER ingest_queue_gone;
DROP TRIGGER ingest_queue_group_insert;
DROP TRIGGER ingest_queue_group_update;
DROP TRIGGER ingest_queue_group_leave;
DROP TRIGGER ingest_queue_replace;
DROP TRIGGER ingest_queue_replaced;
DROP TRIGGER ingest_queue_replace_by_update;
DROP TRIGGER ingest_queue_replaced_by_update;
DROP TABLE membox_queue_groups;
DROP TABLE membox_queue_replaced;
CREATE VIEW membox_queue_group_moved (queue, group_key) AS SELECT NULL, NULL;
CREATE TRIGGER membox_queue_group_moved INSTEAD OF INSERT ON membox_queue_group_moved BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_count_delete AFTER DELETE ON ingest_queue BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_group_insert AFTER INSERT ON ingest_queue BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_group_update AFTER UPDATE OF status ON ingest_queue BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_group_leave AFTER UPDATE OF group_key ON ingest_queue BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_group_delete AFTER DELETE ON ingest_queue BEGIN SELECT 1; END;
CREATE TRIGGER ingest_queue_history_delete AFTER DELETE ON ingest_queue BEGIN SELECT 1; END;
UPDATE membox_queue_meta SET value = '3' WHERE key = 'schema_version';
"""

DOWN_TO_VERSION_2 = """
DROP TRIGGER ingest_queue_changed;
DROP TRIGGER membox_queue_schedule_changed;
ALTER TABLE ingest_queue DROP COLUMN checksum;
ALTER TABLE membox_queue_schedules DROP COLUMN checksum;
UPDATE membox_queue_meta SET value = '2' WHERE key = 'schema_version';
"""

DOWN_TO_VERSION_1 = """
DROP INDEX ingest_queue_finished;
DROP INDEX ingest_queue_heads;
DROP TABLE membox_queue_holders;
DROP TABLE membox_queue_starts;
DROP TABLE membox_queue_holds;
DROP TABLE membox_queue_schedules;
DROP TABLE membox_queue_progress;
CREATE INDEX ingest_queue_failed ON ingest_queue (queue, finished_at) WHERE status = 'failed';
ALTER TABLE ingest_queue DROP COLUMN holder;
UPDATE membox_queue_meta SET value = '1' WHERE key = 'schema_version';
"""


def test_a_file_of_version_1_is_brought_up_with_its_rows(path):
    with Queue(path) as queue:
        queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a"), "done", "failed"])
        queue.claim(group="a")
        queue.mark_done(queue.claim())
        queue.mark_failed(queue.claim(), "no")
    connection = sqlite3.connect(path)
    connection.executescript(DOWN_TO_VERSION_4)
    connection.executescript(DOWN_TO_VERSION_3)
    connection.executescript(DOWN_TO_VERSION_2)
    connection.executescript(DOWN_TO_VERSION_1)
    connection.close()
    with Queue(path) as queue:
        found = [(item.content, item.status) for item in queue.items()]
        assert found == [("a1", "processing"), ("a2", "pending"), ("done", "done"), ("failed", "failed")]
        assert [item.content for item in queue.failures()] == ["failed"]
        assert queue.claim() is None  # the group is held, as it was
        queue.enqueue_many([NewItem("b1", group="b"), NewItem("b2", group="b")])
        item = queue.claim()
        assert (item.content, queue.claim()) == ("b1", None)
        assert queue.mark_done(item)
        assert queue.schedule("beat", "tick", every=60).name == "beat"
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT value FROM membox_queue_meta WHERE key = 'schema_version'").fetchone() == ("5",)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_file_of_version_2_is_brought_up_with_its_rows(path):
    with Queue(path) as queue:
        queue.enqueue("before", headers={"a": 1})
        queue.schedule("beat", "tick", every=60)
    connection = sqlite3.connect(path)
    connection.executescript(DOWN_TO_VERSION_4)
    connection.executescript(DOWN_TO_VERSION_3)
    connection.executescript(DOWN_TO_VERSION_2)
    connection.close()
    with Queue(path) as queue:
        queue.enqueue("after")
        assert [(item.content, item.headers) for item in queue.claim_many(9)] == [("before", {"a": 1}), ("after", {})]
        assert queue.schedule("beat", "tock", every=60).content == "tock"
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT value FROM membox_queue_meta WHERE key = 'schema_version'").fetchone() == ("5",)
    # What nobody has summed up before is not summed up now: it may be damaged already.
    assert connection.execute("SELECT checksum IS NULL FROM ingest_queue").fetchall() == [(1,), (0,)]
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_file_of_version_3_is_brought_up_and_what_replaced_rows_left_behind_is_put_right(path):
    with Queue(path) as queue:
        queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a"), "free"])
        assert queue.claim().content == "a1"
    with Queue(path, "emptied") as emptied:
        emptied.delete(emptied.enqueue("x"))
    connection = sqlite3.connect(path)
    connection.executescript(DOWN_TO_VERSION_4)
    connection.executescript(DOWN_TO_VERSION_3)
    connection.execute("INSERT OR REPLACE INTO ingest_queue (id, content) VALUES (1, 'other')")
    connection.execute("UPDATE ingest_queue SET behind = 1 WHERE id = 3")
    connection.commit()
    connection.close()
    with Queue(path) as queue:
        assert queue.counts()["pending"] == 3
        assert queue.group_counts() == {"a": {"pending": 1, "processing": 0}}
        assert [item.content for item in queue.claim_many(9)] == ["other", "a2", "free"]
        assert queue.counts()["processing"] == 3
        assert set(queue.queues()) == {"ingest", "emptied"}


@pytest.mark.parametrize("holder", ["1.5", "'somebody'", "x'00'", "9e99"])
def test_an_entry_among_the_holders_that_is_no_number_holds_up_no_claim(queue, path, sql, holder):
    queue.enqueue("x")
    sql(path, f"INSERT INTO membox_queue_holders VALUES ('ingest', {holder})")
    assert queue.claim().content == "x"
    assert queue.claim() is None
    assert queue.check()["stuck"] == []


def test_a_file_of_version_4_is_brought_up_and_rows_with_a_status_that_is_none_are_told(path):
    with Queue(path) as queue:
        queue.enqueue_many(["a", "b"])
    connection = sqlite3.connect(path)
    connection.executescript(DOWN_TO_VERSION_4)
    connection.execute("UPDATE ingest_queue SET status = 'Pending' WHERE id = 1")
    connection.commit()
    connection.close()
    with Queue(path) as queue:
        health = queue.check()
        assert (health["schema_version"], health["faults"], health["mended"]) == (5, [], [])
        assert health["unknown_status"] == [1]
        assert queue.check(thorough=False)["unknown_status"] == []
        assert [item.content for item in queue.claim_many(9)] == ["b"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ingest_queue (content, status) VALUES ('y', 'Pending')",
        "INSERT OR IGNORE INTO ingest_queue (content, status) VALUES ('y', 'waiting')",
        "INSERT INTO ingest_queue (content, status) VALUES ('y', x'70')",
        "INSERT INTO ingest_queue (content, status) VALUES ('y', '')",
        "UPDATE ingest_queue SET status = 'queued'",
        "UPDATE OR REPLACE ingest_queue SET status = 'DONE'",
    ],
)
@pytest.mark.parametrize("made", ["by us", "by membox"])
def test_a_status_that_is_none_is_refused_by_the_table(path, statement, made):
    connection = sqlite3.connect(path, isolation_level=None)
    if made == "by membox":
        connection.executescript(MEMBOX)
    with Queue(path) as queue:
        queue.enqueue("x")
        with pytest.raises(sqlite3.IntegrityError, match="pending, processing, done, failed, blocked or cancelled"):
            connection.execute(statement)
        connection.close()
        assert [(item.content, item.status) for item in queue.items()] == [("x", "pending")]
        assert queue.counts()["pending"] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE membox_queue_counts SET pending = 1.5",
        "UPDATE membox_queue_counts SET done = 'many'",
        "UPDATE membox_queue_groups SET pending = 'many'",
        "INSERT INTO membox_queue_holds VALUES ('ingest', x'00', 1.5)",
        "INSERT INTO membox_queue_starts VALUES ('ingest', '', 1.5, 'soon')",
        "INSERT INTO membox_queue_starts VALUES ('ingest', '', 1, 'soon')",
    ],
)
def test_values_of_another_type_in_our_own_tables_stop_no_call(path, sql, statement):
    with Queue(path, rate=Rate(100, per=60)) as queue:
        queue.enqueue("x", group="g")
        sql(path, statement)
        for look in (queue.counts, queue.group_counts, queue.stats, queue.check, queue.tend):
            look()
        assert queue.mark_done(queue.claim())
