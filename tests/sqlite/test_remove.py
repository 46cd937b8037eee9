"""remove: every object of the queue leaves the file, the application's stay, and nothing is lost by mistake."""

import sqlite3

import pytest
from membox_queue import NewItem, Queue, QueueBusyError, SchemaVersionError, StorageError, remove
from programs import PROGRAMS

from sqlite.membox_store import TABLES

APPLICATION = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, ingest_queue_id INTEGER, text TEXT);
CREATE INDEX orders_by_text ON orders (text);
CREATE VIEW open_orders AS SELECT * FROM orders;
CREATE TABLE ingest_queue_notes (text TEXT);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO orders (text) VALUES ('one');
INSERT INTO meta VALUES ('version', '7');
"""


def run(path, *scripts):
    connection = sqlite3.connect(path)
    for script in scripts:
        connection.executescript(script)
    connection.close()


def schema(path):
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    connection.close()
    return [row for row in found if not row[1].startswith("sqlite_")]


@pytest.fixture
def application(path):
    run(path, APPLICATION)
    return path


def use(path):
    """Leave something in every table of ours, and nothing unfinished."""
    with Queue(path) as queue, Queue(path, "mail") as mail:
        queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g"), NewItem("c", key="k")])
        mail.enqueue("letter")
        queue.schedule("beat", "tick", every=60)
        queue.drain(lambda item: item.set_progress(0.5))
        mail.drain(lambda item: 1 / 0)


def test_every_object_of_ours_is_gone_and_the_application_is_untouched(application, sql):
    before = schema(application)
    use(application)
    removed = remove(application)
    assert (removed["items"], removed["unfinished"]) == (4, 0)
    assert {"table ingest_queue", "view membox_queue_gone", "index ingest_queue_ready"} <= set(removed["objects"])
    assert schema(application) == before
    assert sql(application, "SELECT text FROM orders") == [["one"]]
    assert sql(application, "SELECT * FROM meta") == [["version", "7"]]
    assert sql(application, "PRAGMA integrity_check") == [["ok"]]


def test_the_file_can_have_a_queue_again(application):
    use(application)
    remove(application)
    with Queue(application) as queue:
        assert queue.items() == []
        assert queue.schedules() == []
        queue.enqueue("new")
        assert queue.drain(lambda item: None).done == 1


def test_a_dry_run_says_what_would_go_and_changes_nothing(application):
    use(application)
    with Queue(application) as queue:
        queue.enqueue("unfinished")
    before = schema(application)
    would = remove(application, dry_run=True)
    assert (would["items"], would["unfinished"]) == (5, 1)
    assert schema(application) == before
    assert remove(application, discard=True) == would


def test_unfinished_items_are_removed_only_when_that_is_said(path):
    with Queue(path) as queue:
        queue.enqueue_many(["a", "b"])
    with pytest.raises(ValueError, match=r"2 unfinished items.*discard=True"):
        remove(path)
    with Queue(path) as queue:
        assert queue.pending() == 2
    assert remove(path, discard=True)["unfinished"] == 2


def test_it_is_refused_while_this_process_has_the_queue_open(path):
    with Queue(path), pytest.raises(QueueBusyError, match="close it first"):
        remove(path)
    remove(path)


@pytest.mark.parametrize("program", ["work_idly", "drain_and_hang", "claim_and_hang"])
def test_it_is_refused_while_a_worker_of_another_process_lives(path, start, clock, program):
    with Queue(path) as queue:
        if program != "work_idly":
            queue.enqueue("x")
    arguments = [str(clock.ms)] if program == "claim_and_hang" else []
    worker = start(PROGRAMS / f"{program}.py", path, *arguments)
    assert worker.stdout.readline()
    for dry_run in (True, False):
        with pytest.raises(QueueBusyError, match=r"stop the workers.*nothing was removed"):
            remove(path, discard=True, dry_run=dry_run)
    worker.kill()
    worker.wait()
    assert "table ingest_queue" in remove(path, discard=True)["objects"]


def test_it_is_refused_while_a_spawned_worker_is_about_to_start(path):
    with Queue(path) as queue:
        queue._announce_worker(60)
    with pytest.raises(QueueBusyError, match="is about to"):
        remove(path)


def test_it_is_refused_while_membox_drains(path, sql):
    run(path, TABLES)
    Queue(path).close()
    sql(
        path,
        """INSERT INTO meta VALUES ('worker_lease',
           json_object('pid', 12, 'hostname', 'elsewhere', 'heartbeat', strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')))""",
    )
    with pytest.raises(QueueBusyError, match="process 12 works on it"):
        remove(path)


USES = {
    "table receipts": "CREATE TABLE receipts (item INTEGER REFERENCES ingest_queue (id))",
    "trigger hand_over": """CREATE TRIGGER hand_over AFTER INSERT ON orders
                            BEGIN INSERT INTO ingest_queue (content) VALUES (NEW.text); END""",
    "view waiting": "CREATE VIEW waiting AS SELECT * FROM \"ingest_queue\" WHERE status = 'pending'",
    "view totals": "CREATE VIEW totals AS SELECT * FROM MEMBOX_QUEUE_COUNTS",
}


@pytest.mark.parametrize("user", USES)
def test_it_is_refused_while_something_of_the_application_uses_the_queue(application, user):
    Queue(application).close()
    run(application, USES[user])
    before = schema(application)
    with pytest.raises(StorageError, match=f"the {user} of the application uses"):
        remove(application)
    assert schema(application) == before
    kind, name = user.split()
    run(application, f"DROP {kind} {name}")
    remove(application)


def test_rows_of_the_application_are_not_deleted_by_a_foreign_key_of_its_own(path, sql):
    Queue(path).close()
    run(path, "CREATE TABLE lines (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES lines (id))")
    run(path, "INSERT INTO lines VALUES (1, 1)")
    remove(path)
    assert sql(path, "SELECT count(*) FROM lines") == [[1]]


def test_a_file_that_membox_made_keeps_its_table_and_its_rows(path, sql):
    run(path, TABLES, "INSERT INTO ingest_queue (content) VALUES ('waits')")
    with Queue(path) as queue:
        queue.enqueue("ours")
    removed = remove(path)
    assert (removed["items"], removed["unfinished"]) == (0, 0)
    assert sql(path, "SELECT content FROM ingest_queue") == [["waits"], ["ours"]]
    names = {name for _, name, _ in schema(path)}
    assert names == {"meta", "ingest_queue", "idx_ingest_queue_status", "documents"}
    with Queue(path) as queue:
        assert [item.content for item in queue.claim_many(5)] == ["waits", "ours"]
    run(path, "UPDATE ingest_queue SET status = 'done'")


def test_what_is_left_of_a_half_removed_queue_is_removed(path):
    Queue(path).close()
    run(path, "DROP TABLE ingest_queue", "DROP TABLE membox_queue_meta")
    assert remove(path, dry_run=True)["items"] == 0
    remove(path)
    assert schema(path) == []


@pytest.mark.parametrize("script", ["CREATE TABLE orders (id)", TABLES])
def test_a_file_without_a_queue_of_ours_is_refused_untouched(path, script):
    run(path, script)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="has no queue in it"):
        remove(path)
    assert path.read_bytes() == before


def test_a_missing_file_is_not_made(path):
    with pytest.raises(StorageError, match=r"memory\.db': there is no such file"):
        remove(path)
    assert not path.exists()
    with pytest.raises(ValueError, match="memory"):
        remove(":memory:")


def test_a_file_of_a_newer_schema_is_refused(path, sql):
    Queue(path).close()
    sql(path, "UPDATE membox_queue_meta SET value = '999' WHERE key = 'schema_version'")
    with pytest.raises(SchemaVersionError):
        remove(path)
