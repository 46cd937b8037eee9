"""workers: the records of loops in a file, and what prevents them."""

import pytest
from loops_in_threads import ended, nothing
from membox_queue import Queue
from programs import PROGRAMS

RECORDS = "SELECT count(*) FROM membox_queue_meta WHERE key LIKE 'worker:%'"


@pytest.fixture
def records(path, sql):
    """How many records of loops the file has."""
    return lambda: sql(path, RECORDS)[0][0]


@pytest.fixture
def killed(path, queue, start):
    """Let a loop in another process be killed while it works."""

    def killed():
        queue.enqueue("x")
        process = start(PROGRAMS / "hold.py", path, "work", 3600)
        assert process.stdout.readline() == "held\n"
        process.kill()
        process.wait(30)

    return killed


def test_a_loop_leaves_no_record_behind(queue, records):
    for exclusive in (True, False):
        queue.enqueue("x")
        assert queue.drain(lambda item: records(), exclusive=exclusive).done == 1
    assert [item.result for item in queue.items()] == [1, 1]
    assert records() == 0


def test_who_looks_removes_the_records_of_the_dead(queue, records, killed):
    killed()
    assert records() == 1
    queue.workers()
    assert records() == 0


def test_a_loop_that_begins_removes_the_records_of_the_dead(queue, records, killed, sql, path):
    killed()
    sql(path, "INSERT INTO membox_queue_meta VALUES ('worker:1', 'not a record')")
    assert records() == 2
    queue.drain(nothing)
    assert records() == 0


def test_who_looks_does_not_wait_for_a_writer(queue, records, killed, writer):
    killed()
    close_if_idle = writer()
    assert [worker.alive for worker in queue.workers()] == [False]
    close_if_idle()
    assert records() == 1
    queue.workers()
    assert records() == 0


def test_a_loop_that_cannot_write_begins_and_is_seen_later(path, writer, background, until):
    with Queue(path, busy_timeout=0.01) as queue, Queue(path) as other:
        close_if_idle = writer()
        future = background(queue.work, nothing)
        until(lambda: queue._loops and next(iter(queue._loops)).has_begun)
        assert other.workers() == []
        close_if_idle()
        until(lambda: [worker.kind for worker in other.workers()] == ["work"])
        ended(queue, future)
    assert not future.exception()


def test_a_loop_ends_in_spite_of_a_writer_and_is_not_seen(queue, path, writer, background, until):
    future = background(queue.work, nothing)
    until(queue.worker_is_alive)
    close_if_idle = writer()
    ended(queue, future)
    assert queue.workers() == []
    close_if_idle()


def test_a_queue_in_memory_has_workers_too(background, until):
    with Queue(":memory:") as queue:
        future = background(queue.work, nothing)
        until(lambda: [worker.kind for worker in queue.workers()] == ["work"])
        assert queue.worker_is_alive()
        ended(queue, future)
        assert (queue.workers(), queue.worker_is_alive()) == ([], False)


def test_a_drain_without_a_lease_that_finds_nothing_writes_nothing(queue, writer):
    close_if_idle = writer()
    assert queue.drain(nothing, exclusive=False).done == 0
    close_if_idle()


def test_the_lease_of_membox_is_seen(queue, path, sql):
    record = '{"pid": 12, "hostname": "box", "heartbeat": "' + "2999-01-01T00:00:00" + '"}'
    queue._share_leases_with_membox()
    sql(path, f"INSERT INTO meta VALUES ('worker_lease', '{record}')")
    assert queue.workers() == [], "its clock is wrong"
    queue.acquire_worker_lease()
    sql(path, "UPDATE meta SET value = json_remove(value, '$.owner', '$.ttl', '$.holder')")
    assert [(worker.pid, worker.kind) for worker in queue.workers()] == [(queue.stats()["worker"]["pid"], None)]


WITHOUT_LOCKS = """
import sys; from membox_queue import Queue, _native; _native.switch_off("locks"); queue = Queue(sys.argv[1])
queue.enqueue("x"); queue.drain(lambda item: [worker.kind for worker in queue.workers()]); print(queue.get(1).result)
"""


def test_where_a_dead_loop_cannot_be_told_from_a_live_one_loops_are_not_listed(path, start, records):
    out, _ = start(WITHOUT_LOCKS, path).communicate(timeout=30)
    assert out == "[None]\n", "the lease and the item tell"
    assert records() == 0
