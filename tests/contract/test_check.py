"""check, running, queues and has_queue: how the file and its queues fare."""

import os
import sqlite3

import pytest
from membox_queue import Queue, _native, errors

DIE_WITH_AN_ITEM = """
import os, signal, sys
from membox_queue import Queue
Queue(sys.argv[1]).claim()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_sound_queue(queue, path):
    queue.enqueue("x")
    health = queue.check()
    assert (health["faults"], health["stuck"], health["writer"], health["own_locks"]) == ([], [], None, True)
    assert health["schema_version"] >= 2
    assert health["wal_bytes"] == path.with_name("memory.db-wal").stat().st_size > 0
    assert health["file_bytes"] > 0


def test_space_that_removed_rows_left_is_told(queue):
    queue.enqueue_many("x" * 10_000 for _ in range(50))
    before = queue.check()["free_bytes"]
    queue.purge("pending")
    assert queue.check()["free_bytes"] > before


def test_a_claim_whose_lease_ran_out_is_stuck_until_somebody_claims(queue, clock):
    queue.enqueue_many(["a", "b"])
    queue.claim(lease=10)
    assert queue.check()["stuck"] == []
    clock.advance(11)
    assert queue.check()["stuck"] == [1]
    queue.claim()
    assert queue.check()["stuck"] == []


def test_a_claim_of_a_process_that_was_killed_is_stuck_at_once(queue, path, start):
    queue.enqueue("x")
    start(DIE_WITH_AN_ITEM, path).wait()
    assert queue.check()["stuck"] == [1]
    assert queue.claim().attempt == 2
    assert queue.check()["stuck"] == []


def test_who_holds_the_write_lock_is_named(queue, path, writer):
    let_go = writer()
    assert queue.check()["writer"].startswith("process ")
    let_go()
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


def test_who_works_is_told(queue, clock):
    assert queue.stats()["worker"] is None
    queue.acquire_worker_lease()
    worker = queue.stats()["worker"]
    assert (worker["pid"], worker["heartbeat"]) == (os.getpid(), clock.now)
    assert worker["hostname"]


def test_all_queues_of_the_file(queue, path):
    assert queue.queues() == {}
    queue.enqueue("x")
    with Queue(path, "emails") as emails:
        emails.enqueue_many(["a", "b"])
        emails.mark_done(emails.claim())
    queues = queue.queues()
    assert list(queues) == ["emails", "ingest"]
    assert (queues["emails"]["pending"], queues["emails"]["done"], queues["ingest"]) == (1, 1, queue.counts())


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


def test_what_is_being_worked_on_the_longest_first(queue, clock):
    queue.enqueue_many(["a", "b", "c"])
    assert queue.running() == []
    first = queue.claim()
    clock.advance(5)
    queue.claim()
    assert [(item.content, item.status) for item in queue.running()] == [("a", "processing"), ("b", "processing")]
    assert [item.id for item in queue.running(limit=1)] == [1]
    queue.mark_done(first)
    assert [item.id for item in queue.running()] == [2]
