"""The table `meta` is membox's: used in files that membox made, made by its drop-in, else the application's."""

import json
import sqlite3

import pytest
from membox_queue import DrainReport, Queue
from membox_queue.membox import QueueOps

from sqlite.membox_store import TABLES

META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


def run(path, script):
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def tables(path, sql):
    return {name for (name,) in sql(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")}


def make_as_before(path, sql):
    """A file as versions made it that created `meta` in every file."""
    Queue(path).close()
    sql(path, "DELETE FROM membox_queue_meta WHERE key = 'worker_lease_is_here'")
    sql(path, META)


def has_a_working_lease(queue, path):
    with Queue(path) as other:
        queue.enqueue("x")
        assert queue.acquire_worker_lease()
        assert other.worker_is_alive()
        assert other.drain(print).refused
        assert queue.release_worker_lease()
        assert other.drain(lambda item: None) == DrainReport(done=1)
        return True


def test_no_meta_is_made_in_the_file_of_an_application(path, sql):
    run(path, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    with Queue(path) as queue:
        assert has_a_working_lease(queue, path)
        with queue.lock("nightly"):
            pass
    assert "meta" not in tables(path, sql)


@pytest.mark.parametrize("shape", [META, "CREATE TABLE meta (title TEXT NOT NULL)"])
def test_an_application_may_make_its_own_meta_before_or_after(tmp_path, sql, shape):
    for name in ("before.db", "after.db"):
        path = tmp_path / name
        if name == "before.db":
            run(path, shape)
        Queue(path).close()
        if name == "after.db":
            run(path, shape)
        with Queue(path) as queue:
            assert has_a_working_lease(queue, path)
            assert queue.acquire_worker_lease()
            assert sql(path, "SELECT count(*) FROM meta") == [[0]]
            assert queue.check()["faults"] == []


def test_a_file_that_already_has_our_meta_keeps_working(path, sql):
    make_as_before(path, sql)
    with Queue(path) as queue:
        assert has_a_working_lease(queue, path)
        assert queue.acquire_worker_lease()
        assert sql(path, "SELECT key FROM meta") == [["worker_lease"]]
        assert queue.check()["mended"] == []


@pytest.mark.parametrize(
    "instead", ["", "CREATE TABLE meta (title TEXT NOT NULL)", "CREATE VIEW meta AS SELECT 1 AS key"]
)
def test_a_meta_that_was_dropped_or_replaced_is_not_made_again(path, sql, instead):
    make_as_before(path, sql)
    run(path, f"DROP TABLE meta; {instead}")
    before = sql(path, "SELECT type, name, sql FROM sqlite_schema WHERE name = 'meta'")
    with Queue(path) as queue:
        assert has_a_working_lease(queue, path)
        assert queue.check()["faults"] == []
    assert sql(path, "SELECT type, name, sql FROM sqlite_schema WHERE name = 'meta'") == before


def test_a_meta_that_is_dropped_while_the_queue_is_open_is_a_fault(path, sql):
    make_as_before(path, sql)
    with Queue(path) as queue:
        sql(path, "DROP TABLE meta")
        assert any("table meta is missing" in fault for fault in queue.check()["faults"])
    with Queue(path) as queue:
        assert has_a_working_lease(queue, path)


def test_membox_shares_the_lease_of_a_file_that_it_made_also_without_our_tables(path, sql):
    run(path, TABLES)
    with Queue(path) as queue:
        queue.acquire_worker_lease()
        assert sql(path, "SELECT key FROM meta") == [["worker_lease"]]
    sql(path, "DROP TABLE membox_queue_meta")
    with Queue(path) as queue:
        queue.acquire_worker_lease()
        assert sql(path, "SELECT key FROM meta") == [["worker_lease"]]


class Store(QueueOps):
    def __init__(self, db_path):
        self.db_path = db_path


def test_the_drop_in_makes_meta_and_takes_the_leases_of_others_there(path, sql):
    with Queue(path) as queue, Queue(path, "mail") as mail:
        assert queue.acquire_worker_lease()
        assert mail.acquire_worker_lease()
        with queue.lock("nightly"):
            store = Store(path)
            assert store.worker_is_alive()
            assert sql(path, "SELECT key FROM meta ORDER BY key") == [
                ["lock:nightly"],
                ["worker_lease"],
                ["worker_lease:mail"],
            ]
            assert sql(path, "SELECT count(*) FROM membox_queue_meta WHERE key GLOB 'worker_lease*'") == [[0]]
        assert queue.refresh_worker_lease()
        assert queue.release_worker_lease()
        assert store.acquire_worker_lease()
        [[lease]] = sql(path, "SELECT value FROM meta WHERE key = 'worker_lease'")
        assert json.loads(lease)["pid"]
        assert queue.worker_is_alive()
        store.close_queue()
        assert mail.release_worker_lease()
        assert sql(path, "SELECT count(*) FROM meta") == [[0]]


def test_the_drop_in_leaves_a_meta_of_another_shape_alone(path, sql):
    run(path, "CREATE TABLE meta (title TEXT NOT NULL)")
    store = Store(path)
    assert store.acquire_worker_lease()
    assert store.worker_is_alive()
    store.close_queue()
    assert sql(path, "SELECT count(*) FROM meta") == [[0]]
