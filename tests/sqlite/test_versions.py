"""Files of earlier versions: brought up with their rows."""

import sqlite3
from pathlib import Path

import pytest
from membox_queue import NewItem, Queue

VERSION_5 = (Path(__file__).parent / "version_5.sql").read_text()

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


def of_version(number, path, *statements):
    """Make a file of an earlier version, with its rows."""
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_5)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.commit()
    for script in (DOWN_TO_VERSION_4, DOWN_TO_VERSION_3, DOWN_TO_VERSION_2, DOWN_TO_VERSION_1)[: 5 - number]:
        connection.executescript(script)
    connection.close()


def insert(content, **values):
    names = ["content", *values]
    return (
        f"INSERT INTO ingest_queue ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        (content, *values.values()),
    )


def check_version(path):
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT value FROM membox_queue_meta WHERE key = 'schema_version'").fetchone() == ("6",)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL")
    objects = set(found.fetchall())
    connection.close()
    fresh = path.with_name("fresh.db")
    Queue(fresh).close()
    connection = sqlite3.connect(fresh)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL")
    assert objects == set(found.fetchall())
    connection.close()


CLAIMED = {"status": "processing", "attempt": 1, "claim_token": 7, "lease_until": 1 << 60, "lease_ms": 1 << 60}


@pytest.mark.parametrize("number", [5, 4, 3, 2, 1])
def test_a_file_of_every_version_is_brought_up_with_its_rows(path, number):
    rows = [
        insert("a1", group_key="a", **CLAIMED),
        insert("a2", group_key="a"),
        insert("done", status="done", attempt=1, finished_at="2026-01-01 00:00:00.000"),
        insert("failed", status="failed", attempt=1, finished_at="2026-01-01 00:00:00.000"),
        insert("keyed", dedup_key="k", run_at=1 << 50),
        insert("headed", headers='{"a": 1}', run_at=1 << 50),
    ]
    of_version(number, path, *rows)
    with Queue(path) as queue:
        found = [(item.content, item.status, item.headers) for item in queue.items()]
        assert found == [
            ("a1", "processing", {}),
            ("a2", "pending", {}),
            ("done", "done", {}),
            ("failed", "failed", {}),
            ("keyed", "pending", {}),
            ("headed", "pending", {"a": 1}),
        ]
        assert queue.counts() == {
            "pending": 3, "processing": 1, "done": 1, "failed": 1, "blocked": 0, "cancelled": 0
        }  # fmt: skip
        assert [item.content for item in queue.failures()] == ["failed"]
        assert queue.claim() is None  # the group is held, as it was
        assert queue.enqueue("twin", key="k") == 5
        queue.enqueue_many([NewItem("b1", group="b"), NewItem("b2", group="b")])
        item = queue.claim()
        assert (item.content, queue.claim()) == ("b1", None)
        assert queue.mark_done(item)
        assert queue.schedule("beat", "tick", every=60).name == "beat"
        assert queue.schedule("beat", "tock", every=60).content == "tock"
        assert queue.check()["faults"] == []
    check_version(path)


def test_what_was_enqueued_without_a_checksum_gets_none(path):
    of_version(2, path, insert("before"))
    with Queue(path) as queue:
        queue.enqueue("after")
    connection = sqlite3.connect(path)
    # It may be damaged already.
    assert connection.execute("SELECT checksum IS NULL FROM ingest_queue").fetchall() == [(1,), (0,)]
    connection.close()


def test_a_file_of_version_3_is_brought_up_and_what_replaced_rows_left_is_mended(path):
    of_version(3, path, insert("a1", group_key="a"), insert("a2", group_key="a"), insert("free"))
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO membox_queue_counts (queue) VALUES ('emptied')")
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


def test_a_file_of_version_4_is_brought_up_and_rows_of_unknown_status_are_told(path):
    of_version(4, path, insert("a"), insert("b"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE ingest_queue SET status = 'Pending' WHERE id = 1")
    connection.commit()
    connection.close()
    with Queue(path) as queue:
        health = queue.check()
        assert (health["schema_version"], health["faults"], health["mended"]) == (6, [], [])
        assert health["unknown_status"] == [1]
        assert queue.check(thorough=False)["unknown_status"] == []
        assert [item.content for item in queue.claim_many(9)] == ["b"]
