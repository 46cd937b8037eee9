"""The health of a file: its write-ahead log, its locks, its damage."""

import sqlite3

import pytest
from membox_queue import Queue, _native, errors


def test_a_sound_queue(queue, path):
    queue.enqueue("x")
    health = queue.check()
    assert (health["faults"], health["stuck"], health["writer"], health["own_locks"]) == ([], [], None, True)
    assert health["schema_version"] >= 2
    assert health["wal_bytes"] == path.with_name("memory.db-wal").stat().st_size > 0
    assert health["file_bytes"] > 0


def test_who_holds_the_write_lock_is_named(queue, path, writer):
    close_if_idle = writer()
    assert queue.check()["writer"].startswith("process ")
    close_if_idle()
    assert queue.check()["writer"] is None
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    assert queue.check()["writer"] == "this process"
    connection.close()


def test_a_damaged_file_is_told(path, tmp_path):
    with Queue(path) as queue:
        queue.enqueue_many("x" * 3000 for _ in range(200))
        queue.compact()
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 2 // 4096 * 4096
    damaged[middle : middle + 4096] = b"\xff" * 4096
    (tmp_path / "damaged.db").write_bytes(damaged)
    with Queue(tmp_path / "damaged.db") as queue:
        assert queue.check()["faults"]
        assert queue.check(thorough=False)["schema_version"] >= 2


def test_a_file_without_a_queue_is_known_without_being_touched(tmp_path, sql):
    plain = tmp_path / "app.db"
    sql(plain, "CREATE TABLE users (name TEXT)")
    before = plain.read_bytes()
    assert not _native.has_queue(plain)
    assert plain.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]
    Queue(plain).close()
    assert _native.has_queue(plain)


def test_a_file_that_is_no_database_has_no_queue_but_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("dear diary, " * 100)
    with pytest.raises(errors.NotADatabaseError, match=r"notes\.txt"):
        _native.has_queue(tmp_path / "notes.txt")
    with pytest.raises(errors.StorageError):
        _native.has_queue(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
