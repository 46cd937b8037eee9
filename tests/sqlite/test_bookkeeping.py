"""Triggers are off for our hot statements, which do their own bookkeeping, unless the application has triggers."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from membox_queue import NewItem, Queue, QueueFullError

SOURCE = Path(__file__).parents[2] / "src" / "sqlite"

REPORTED = {"enqueue", "claim", "finish", "finish_cancelled", "bring_in_due", "remove_done", "replace"}
"""Statements whose functions report what they change, or let triggers fire where they must."""

WITH_TRIGGERS = {
    "answer",
    "answer_add",
    "cancel",
    "delete",
    "expire",
    "move_on",
    "purge",
    "replay",
    "retry",
    "retry_failed",
    "run_later",
    "run_now",
    "unblock",
}
"""Statements that run by `change_items` or after `let_triggers_fire`."""

WITHOUT_EFFECT_ON_COUNTS = {
    "cancel_for_good",
    "cancel_running",
    "drop_content",
    "extend",
    "free_key",
    "grant",
    "parent_set",
    "present",
}


def test_every_statement_that_changes_items_is_accounted_for():
    changing = {
        file.stem
        for file in (SOURCE / "sql").glob("*.sql")
        if re.search(r"(INSERT INTO|UPDATE|DELETE FROM) (main\.)?ingest_queue\b", file.read_text())
    }
    assert changing == REPORTED | WITH_TRIGGERS | WITHOUT_EFFECT_ON_COUNTS


AUDIT = """
CREATE TABLE IF NOT EXISTS audit (what TEXT);
CREATE TRIGGER app_insert AFTER INSERT ON ingest_queue BEGIN INSERT INTO audit VALUES ('insert'); END;
CREATE TRIGGER app_update AFTER UPDATE OF status ON ingest_queue BEGIN INSERT INTO audit VALUES (NEW.status); END;
"""


def audit(path):
    with closing(sqlite3.connect(path)) as connection:
        return [what for (what,) in connection.execute("SELECT what FROM audit ORDER BY rowid")]


@pytest.mark.parametrize("name", ["app_insert", "ingest_queue_audit", "membox_queue_audit"])
def test_a_trigger_of_the_application_that_appears_fires_from_the_next_call_on(path, name):
    with Queue(path) as queue:
        queue.enqueue("before")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(AUDIT.replace("app_insert", name))
        queue.enqueue_many(["x", NewItem("y", group="g")])
        queue.mark_done(queue.claim())
        assert audit(path) == ["insert", "insert", "processing", "done"]
        assert queue.counts() | {"pending": 2, "done": 1} == queue.counts()
        assert queue.group_counts() == {"g": {"pending": 1, "processing": 0}}
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"DROP TRIGGER {name}; DROP TRIGGER app_update")
        queue.enqueue("after")
        queue.mark_done(queue.claim())
        assert len(audit(path)) == 4
        assert queue.counts() | {"pending": 2, "done": 2} == queue.counts()


def test_our_own_row_triggers_do_not_fire_for_our_hot_statements(path):
    with Queue(path) as queue:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER ingest_queue_count_insert")
        queue.enqueue("counted all the same")
        assert queue.counts()["pending"] == 1


def test_a_cold_verb_between_hot_ones_counts_once(path):
    with Queue(path) as queue:
        for _ in range(3):
            first, second = queue.enqueue_many([NewItem("x", group="g"), NewItem("y", group="g")])
            assert queue.cancel(first)
            assert queue.mark_done(queue.claim())
            assert queue.retry(first)
            assert queue.run_later(first, 60)
            assert queue.run_now(first)
            assert queue.mark_failed(queue.claim(), "no")
            assert queue.delete(second)
        assert queue.counts() | {"pending": 0, "processing": 0, "failed": 3, "done": 0} == queue.counts()
        assert queue.group_counts() == {}
        assert queue.check()["faults"] == []


def test_counts_that_a_refused_batch_would_have_changed_are_not_changed(path):
    with Queue(path, max_pending=2) as queue:
        queue.enqueue("x")
        with pytest.raises(QueueFullError):
            queue.enqueue_many(["y", "z"])
        assert queue.counts()["pending"] == 1
        queue.enqueue("y")
        assert queue.counts()["pending"] == 2


def test_what_other_connections_make_due_is_claimed(path, clock):
    with Queue(path) as queue, closing(sqlite3.connect(path, isolation_level=None)) as other:
        queue.enqueue_many(["plain"] * 9)
        queue.mark_done(queue.claim())
        other.execute("UPDATE ingest_queue SET run_at = ?, priority = 1 WHERE id = 9", (clock.ms + 500,))
        assert queue.claim().id == 2
        clock.advance(0.6)
        assert queue.claim().id == 9
