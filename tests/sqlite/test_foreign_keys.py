"""Tables of the user that refer to items: no delete of ours removes, changes or orphans a row of them."""

import logging
import sqlite3
from contextlib import closing

import pytest
from membox_queue import Queue, QueueError

ACTIONS = ["", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE SET DEFAULT", "ON DELETE RESTRICT"]
NOTES = "CREATE TABLE notes (text TEXT, item INTEGER DEFAULT 1 REFERENCES ingest_queue (id) {})"


@pytest.fixture
def refer(path):
    """Run statements on a connection of the user, which does not enforce foreign keys."""

    def refer(*statements):
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    return refer


def finish(queue, count):
    ids = queue.enqueue_many(range(count))
    queue.mark_done_many(queue.claim_many(count))
    return ids


REMOVALS = {
    "keep_for": lambda queue: queue.tend(),
    "keep_last": lambda queue: (queue.configure(keep_for=None, keep_last=0), queue.tend()),
    "prune": lambda queue: queue.prune(0),
    "purge": lambda queue: queue.purge("done"),
    "claim": lambda queue: [queue.claim() for _ in range(20)],
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("removal", REMOVALS)
def test_what_a_row_refers_to_is_passed_over_and_the_rest_goes(path, clock, refer, action, removal):
    with Queue(path) as queue:
        finish(queue, 201)
        refer(NOTES.format(action), "INSERT INTO notes VALUES ('a', 3), ('b', 200), ('c', NULL)")
        queue.configure(keep_for=1)
        clock.advance(20)
        REMOVALS[removal](queue)
        assert [item.id for item in queue.items(limit=500)] == [3, 200]
        assert refer("SELECT * FROM notes ORDER BY text") == [("a", 3), ("b", 200), ("c", None)]
        assert queue.check()["kept_by_foreign_keys"] == {"notes": [3, 200]}
        refer("DELETE FROM notes WHERE item = 3")
        clock.advance(20)
        REMOVALS[removal](queue)
        assert [item.id for item in queue.items()] == [200]


def test_failed_and_cancelled_items_are_passed_over_too(path, clock, refer):
    with Queue(path, keep_failed_for=1) as queue:
        ids = queue.enqueue_many([*"abcd"])
        for item in queue.claim_many(2):
            queue.mark_failed(item, "no")
        queue.cancel(3)
        queue.cancel(4)
        refer(NOTES.format("ON DELETE CASCADE"), "INSERT INTO notes VALUES ('a', 1), ('b', 3)")
        clock.advance(20)
        queue.tend()
        assert [item.id for item in queue.items()] == [ids[0], ids[2]]


@pytest.mark.parametrize("status", ["pending", "processing", "blocked"])
def test_a_purge_of_what_is_unfinished_passes_over_too(queue, refer, status):
    queue.enqueue_many([*"abc"])
    refer(f"UPDATE ingest_queue SET status = '{status}'", NOTES.format(""), "INSERT INTO notes VALUES ('a', 2)")
    assert queue.purge(status) == 2
    assert [item.id for item in queue.items()] == [2]


@pytest.mark.parametrize("action", ACTIONS)
def test_a_delete_of_what_a_row_refers_to_is_refused_with_the_name_of_the_table(queue, path, refer, action):
    queue.enqueue("x")
    refer(NOTES.format(action), "INSERT INTO notes VALUES ('a', 1)")
    with pytest.raises(QueueError, match=r"item 1 .*notes"):
        queue.delete(1)
    with Queue(path, "mail") as mail:
        assert mail.delete(1) is False
    assert queue.delete(2) is False
    assert refer("SELECT * FROM notes") == [("a", 1)]
    refer("DROP TABLE notes")
    assert queue.delete(1)


def test_every_way_to_refer_is_seen(queue, refer):
    """By the key left out, by text, by another column, by several, in a table of a strange name, in upper case."""
    finish(queue, 8)
    refer(
        "UPDATE ingest_queue SET source_path = 'Path' || id",
        "CREATE UNIQUE INDEX by_path ON ingest_queue (source_path)",
        "CREATE UNIQUE INDEX by_both ON ingest_queue (queue, source_path)",
        "CREATE TABLE a (item REFERENCES INGEST_QUEUE)",
        "INSERT INTO a VALUES ('1')",
        "CREATE TABLE b (path TEXT COLLATE NOCASE REFERENCES ingest_queue (source_path))",
        "INSERT INTO b VALUES ('Path2'), ('path3')",
        "CREATE TABLE c (q TEXT, p TEXT, FOREIGN KEY (q, p) REFERENCES ingest_queue (queue, source_path))",
        "INSERT INTO c VALUES ('ingest', 'Path4'), ('mail', 'Path5'), ('ingest', NULL)",
        'CREATE TABLE "a ""strange"" name" ("the item" INTEGER, FOREIGN KEY ("the item") REFERENCES "ingest_queue")',
        'INSERT INTO "a ""strange"" name" VALUES (6)',
        "CREATE TABLE wrong (item REFERENCES ingest_queue (no_such_column))",
        "INSERT INTO wrong VALUES (7)",
        "CREATE TABLE unrelated (ingest_queue INTEGER)",
        "INSERT INTO unrelated VALUES (8)",
    )
    assert queue.purge("done") == 4
    assert [item.id for item in queue.items()] == [1, 2, 4, 6]
    told = queue.check()["kept_by_foreign_keys"]
    assert told == {"a": [1], "b": [2], "c": [4], 'a "strange" name': [6]}


def test_many_items_that_are_kept_hold_up_nothing(path, clock, refer):
    with Queue(path, keep_last=2) as queue:
        finish(queue, 300)
        clock.advance(1)
        refer(NOTES.format(""), "INSERT INTO notes SELECT 'x', id FROM ingest_queue WHERE id <= 150")
        queue.tend()
        assert [item.id for item in queue.items(limit=500)] == [*range(1, 151), 299, 300]
        assert len(queue.check()["kept_by_foreign_keys"]["notes"]) == 100


@pytest.mark.parametrize("held", [1, 70])
def test_rows_without_a_time_that_are_kept_hold_up_nothing(path, clock, refer, held):
    with Queue(path, keep_last=2) as queue:
        finish(queue, 300)
        refer(
            "UPDATE ingest_queue SET finished_at = NULL WHERE id <= 200",
            NOTES.format(""),
            f"INSERT INTO notes SELECT 'x', id FROM ingest_queue WHERE id <= {held}",
        )
        queue.tend()
        assert [item.id for item in queue.items(limit=500)] == [*range(1, held + 1), 299, 300]


def test_the_log_tells_once_a_tend(path, clock, refer, caplog):
    with Queue(path) as queue:
        finish(queue, 200)
        refer(NOTES.format(""), "INSERT INTO notes SELECT 'x', id FROM ingest_queue WHERE id % 2 = 0")
        queue.configure(keep_last=0)
        for removal in (queue.tend, lambda: queue.purge("done"), lambda: queue.prune(0)):
            caplog.clear()
            clock.advance(1)
            with caplog.at_level(logging.WARNING, "membox_queue"):
                removal()
            [record] = caplog.records
            assert "notes" in record.getMessage()
        refer("DELETE FROM notes")
        caplog.clear()
        queue.tend()
        assert caplog.records == []


def test_an_item_that_a_row_refers_to_is_kept_when_it_ends(path, refer):
    with Queue(path, keep_for=0) as queue:
        queue.enqueue_many(["kept", "removed"])
        refer(NOTES.format(""), "INSERT INTO notes VALUES ('a', 1)")
        assert queue.mark_done_many(queue.claim_many(2)) == 2
        assert [item.content for item in queue.items()] == ["kept"]


def test_new_content_for_an_item_that_a_row_refers_to_changes_no_row(queue, refer):
    queue.enqueue("old", key="k")
    refer(NOTES.format("ON DELETE CASCADE ON UPDATE CASCADE"), "INSERT INTO notes VALUES ('a', 1)")
    assert queue.enqueue("new", key="k", on_duplicate="replace") == 1
    assert refer("SELECT * FROM notes") == [("a", 1)]


def test_a_file_without_such_tables_keeps_nothing(queue):
    finish(queue, 3)
    assert queue.check()["kept_by_foreign_keys"] == {}
    assert queue.purge("done") == 3
