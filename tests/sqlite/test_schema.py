"""A schema that another program has damaged: told while the queue is open, made whole by opening the file."""

import random
import sqlite3

import pytest
from membox_queue import NewItem, Queue, QueueError, StorageError


def schema(path):
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    connection.close()
    return found


def run(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.executescript(statement)
    connection.close()


def ours(path):
    return [(kind, name) for kind, name, sql in schema(path) if sql and name not in ("sqlite_sequence", "notes")]


@pytest.fixture
def full(path):
    """A file with groups, keys, history and counts, closed."""
    with Queue(path) as queue:
        queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a"), NewItem("k", key="k"), "failed"])
        held = queue.claim_many(9)
        queue.mark_failed(held[-1], "no", give_up=True)
        queue.acquire_worker_lease()
        queue.release_worker_lease()
    return path


def goes_on_working(queue):
    """All the verbs that need the schema, and what they count."""
    assert queue.check()["faults"] == []
    queue.purge("processing")
    _, second = queue.enqueue_many([NewItem("b1", group="b"), NewItem("b2", group="b")])
    assert queue.enqueue("key", key="n") == queue.enqueue("key", key="n")
    items = {item.content: item for item in queue.claim_many(9)}
    assert "b1" in items
    assert "b2" not in items
    queue.mark_done(items["b1"])
    assert queue.claim().id == second
    assert queue.acquire_worker_lease()
    queue.schedule("beat", "tick", every=60)
    rows = [item.status for item in queue.items(limit=1000)]
    assert queue.counts() == {status: rows.count(status) for status in queue.counts()}


def test_every_object_of_the_schema_that_is_dropped_is_made_again_by_opening(full):
    for kind, name in ours(full):
        if name == "ingest_queue":
            continue
        whole = schema(full)
        run(full, f"DROP {kind} IF EXISTS {name}")
        with Queue(full) as queue:
            assert f"{kind} {name}" in queue.check()["mended"], name
            assert queue.check()["faults"] == [], name
            rows = [item.status for item in queue.items(limit=1000)]
            assert queue.counts() == {status: rows.count(status) for status in queue.counts()}, name
        assert schema(full) == whole, name
    with Queue(full) as queue:
        assert queue.check()["mended"] == []
        goes_on_working(queue)


def test_a_dropped_object_is_a_fault_while_the_queue_is_open(full, sql):
    for kind, name in ours(full):
        with Queue(full) as queue:
            sql(full, f"DROP {kind} {name}")
            faults = queue.check()["faults"]
            assert any(f"{kind} {name} is missing" in fault for fault in faults), name
            assert queue.check(thorough=False)["faults"], name


def test_everything_but_the_items_may_be_dropped(full):
    for kind, name in ours(full):
        if name != "ingest_queue":
            run(full, f"DROP {kind} IF EXISTS {name}")
    with Queue(full) as queue:
        assert [item.content for item in queue.items()] == ["a1", "a2", "k", "failed"]
        goes_on_working(queue)


def test_a_file_whose_tables_were_dropped_opens_again_complete(full):
    for kind, name in ours(full):
        if kind == "table":
            run(full, f"DROP TABLE {name}")
    with Queue(full) as queue:
        assert queue.items() == []
        assert queue.history(1) == []
        goes_on_working(queue)


def test_the_version_and_the_index_of_keys_may_be_dropped_together(full):
    run(full, "DROP TABLE membox_queue_meta", "DROP INDEX ingest_queue_key")
    with Queue(full) as queue:
        goes_on_working(queue)


@pytest.mark.parametrize("seed", range(20))
def test_any_part_of_the_schema_may_be_dropped(full, seed):
    whole = schema(full)
    chance = random.Random(seed)
    objects = ours(full)
    for kind, name in chance.sample(objects, chance.randint(2, len(objects))):
        run(full, f"DROP {kind} IF EXISTS {name}")
    with Queue(full) as queue:
        goes_on_working(queue)
    assert schema(full) == whole


def test_the_items_alone_may_be_dropped(full):
    run(full, "DROP TABLE ingest_queue")
    with Queue(full) as queue:
        assert (queue.items(), queue.counts()["failed"], queue.group_counts()) == ([], 0, {})
        goes_on_working(queue)


def test_what_was_changed_while_triggers_were_missing_is_counted_anew(full):
    triggers = [name for kind, name in ours(full) if kind == "trigger"]
    run(
        full,
        *(f"DROP TRIGGER {name}" for name in triggers),
        "INSERT INTO ingest_queue (content, group_key) VALUES ('a3', 'a'), ('c1', 'c'), ('c2', 'c')",
        "DELETE FROM ingest_queue WHERE content = 'failed'",
        "UPDATE ingest_queue SET status = 'done' WHERE content = 'a1'",
    )
    with Queue(full) as queue:
        assert (queue.counts()["pending"], queue.counts()["failed"], queue.counts()["done"]) == (4, 0, 1)
        assert queue.group_counts()["c"] == {"pending": 2, "processing": 0}
        assert [item.content for item in queue.claim_many(9)] == ["a2", "c1"]
        assert queue.history(4) == []


@pytest.mark.parametrize(
    ("kind", "name", "statement"),
    [
        ("trigger", "ingest_queue_gone", "CREATE TRIGGER {} AFTER DELETE ON ingest_queue BEGIN SELECT 1; END"),
        ("index", "ingest_queue_ready", "CREATE INDEX {} ON ingest_queue (queue) WHERE status = 'pending'"),
        ("view", "membox_queue_gone", "CREATE VIEW {} (id) AS SELECT 1"),
        ("index", "ingest_queue_leases", "CREATE VIEW {} (id) AS SELECT 1"),
    ],
)
def test_an_altered_object_is_told_and_made_as_it_should_be_by_opening(full, sql, kind, name, statement):
    whole = schema(full)
    with Queue(full) as queue:
        sql(full, f"DROP {kind} {name}")
        sql(full, statement.format(name))
        assert any(f"{kind} {name} is not as it should be" in fault for fault in queue.check()["faults"])
    with Queue(full) as queue:
        assert f"{kind} {name}" in queue.check()["mended"]
        goes_on_working(queue)
    assert schema(full) == whole


def test_keys_that_came_twice_while_no_index_refused_them_do_not_keep_the_file_shut(full):
    run(
        full,
        "DROP INDEX ingest_queue_key",
        "INSERT INTO ingest_queue (content, dedup_key) VALUES ('again', 'k'), ('x', 'l'), ('y', 'l')",
    )
    with Queue(full) as queue:
        assert [item.key for item in queue.items()] == [None, None, "k", None, None, "l", None]
        assert queue.enqueue("z", key="l") == 6


def test_a_table_of_another_program_under_a_name_of_ours_is_not_touched(full):
    run(full, "DROP VIEW membox_queue_gone", "CREATE TABLE membox_queue_gone (mine)")
    whole = schema(full)
    with pytest.raises(QueueError, match="table membox_queue_gone"):
        Queue(full)
    assert schema(full) == whole


def test_indexes_and_triggers_of_the_user_are_left_alone(full):
    run(
        full,
        "CREATE INDEX ingest_queue_by_project ON ingest_queue (project)",
        "CREATE TRIGGER ingest_queue_audit AFTER INSERT ON ingest_queue BEGIN SELECT 1; END",
        "DROP INDEX ingest_queue_ready",
    )
    with Queue(full) as queue:
        assert queue.check()["mended"] == ["index ingest_queue_ready"]
    assert {"ingest_queue_by_project", "ingest_queue_audit"} <= {name for _, name, _ in schema(full)}


def test_a_queue_whose_tables_were_dropped_says_what_to_do(path, sql):
    with Queue(path) as queue:
        queue.enqueue("x")
        sql(path, "DROP TABLE ingest_queue")
        with pytest.raises(StorageError, match=r"no such table.*close this Queue and open it again"):
            queue.claim()
