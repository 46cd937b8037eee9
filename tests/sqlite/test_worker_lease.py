"""The stored worker lease, as membox reads and writes it: in its `meta` if it made the file, else in our own table."""

import json
import os
import socket
import sqlite3
from datetime import datetime, timedelta

import pytest
from membox_queue import Queue
from membox_queue.loops.loop import Loop
from membox_queue.loops.plan import Plan

from sqlite.membox_store import TABLES

KEY = "worker_lease"


@pytest.fixture(params=["meta", "membox_queue_meta"], autouse=True)
def table(request, path):
    """The table that has the lease: membox's in a file that it made, else ours."""
    if request.param == "meta":
        connection = sqlite3.connect(path)
        connection.executescript(TABLES)
        connection.close()
    return request.param


@pytest.fixture
def other(path):
    with Queue(path) as other:
        yield other


@pytest.fixture
def stored(path, sql, table):
    """Read the stored lease, or put one there as another program would."""

    def stored(value=None):
        if value is not None:
            sql(path, f"INSERT OR REPLACE INTO {table} (key, value) VALUES (?, ?)", KEY, value)
        rows = sql(path, f"SELECT value FROM {table} WHERE key = ?", KEY)
        return rows[0][0] if rows else None

    return stored


def record(heartbeat, **more):
    """A lease as membox writes it."""
    return json.dumps({"pid": 12, "hostname": "elsewhere", "heartbeat": heartbeat} | more)


def test_a_free_lease_is_taken_and_its_record_is_memboxs_with_an_owner(queue, stored, clock):
    assert not queue.worker_is_alive()
    assert queue.acquire_worker_lease() is True
    assert queue.worker_is_alive()
    lease = json.loads(stored())
    assert (lease["pid"], lease["hostname"]) == (os.getpid(), socket.gethostname())
    assert datetime.fromisoformat(lease["heartbeat"]) == clock.now
    assert lease["owner"]


@pytest.mark.parametrize("zone", ["+00:00", "Z", ""])
def test_a_lease_of_membox_lives_by_its_heartbeat_alone(queue, stored, clock, zone):
    stored(record(clock.now.replace(tzinfo=None).isoformat() + zone))
    assert queue.worker_is_alive()
    assert not queue.acquire_worker_lease()
    assert not queue.release_worker_lease()
    clock.advance(60)
    assert not queue.worker_is_alive()
    assert queue.acquire_worker_lease()


@pytest.mark.parametrize(
    "value",
    ["", "nonsense", "null", "[]", "{}", "5", '{"heartbeat": 5}', record("soon"), record(""), record(None)],
)
def test_a_malformed_lease_is_taken_over(queue, stored, value):
    stored(value)
    assert not queue.worker_is_alive()
    assert queue.acquire_worker_lease()
    assert json.loads(stored())["pid"] == os.getpid()


def test_a_heartbeat_far_in_the_future_holds_nobody_off(queue, stored, clock):
    stored(record((clock.now + timedelta(days=1)).isoformat(), ttl=60, owner="x"))
    assert not queue.worker_is_alive()
    assert queue.acquire_worker_lease()


def test_a_heartbeat_slightly_ahead_is_a_live_one(queue, stored, clock):
    stored(record((clock.now + timedelta(seconds=5)).isoformat()))
    assert not queue.acquire_worker_lease()


def test_a_drain_keeps_the_lease_alive_while_it_runs(queue, other, stored, clock, until):
    session = Loop([queue], [print], Plan(exclusive=True, lease_ttl=0.3))
    assert session.begin()
    for _ in range(4):
        clock.advance(0.29)
        until(lambda: datetime.fromisoformat(json.loads(stored())["heartbeat"]) == clock.now)
        assert not other.acquire_worker_lease()
    session.close()
    assert other.acquire_worker_lease()


def test_every_queue_name_has_a_record_of_its_own(queue, path, sql, table):
    with Queue(path, "mail") as mail:
        assert queue.acquire_worker_lease()
        assert mail.acquire_worker_lease()
        held = sql(path, f"SELECT key FROM {table} WHERE json_valid(value) AND key GLOB 'worker_lease*' ORDER BY key")
        assert held == [["worker_lease"], ["worker_lease:mail"]]


def test_releasing_removes_the_record(queue, stored):
    queue.acquire_worker_lease()
    assert queue.release_worker_lease() is True
    assert stored() is None


def test_who_holds_nothing_does_not_change_the_record(queue, other, stored):
    queue.acquire_worker_lease()
    before = stored()
    assert other.refresh_worker_lease() is False
    assert other.release_worker_lease() is False
    assert stored() == before


def test_who_lost_the_lease_does_not_change_the_record(queue, other, stored, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(60)
    assert other.acquire_worker_lease()
    before = stored()
    assert queue.refresh_worker_lease() is False
    assert queue.release_worker_lease() is False
    assert stored() == before
