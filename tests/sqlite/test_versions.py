"""Files of earlier versions: brought up with their rows."""

import sqlite3

from membox_queue import (
    NewItem,
    Queue,
)

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


def test_a_file_of_version_3_is_brought_up_and_what_replaced_rows_left_is_mended(path):
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


def test_a_file_of_version_4_is_brought_up_and_rows_of_unknown_status_are_told(path):
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
