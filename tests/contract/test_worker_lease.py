"""The worker lease: the right to be the one worker that drains a queue."""

import json
import os
import socket
from datetime import datetime, timedelta

import pytest
from membox_queue import Queue
from membox_queue.loops.loop import Loop
from membox_queue.loops.plan import Plan

KEY = "worker_lease"


@pytest.fixture
def other(path):
    with Queue(path) as other:
        yield other


@pytest.fixture
def stored(path, sql):
    """Read the stored lease, or put one there as another program would."""

    def stored(value=None):
        if value is not None:
            sql(path, "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", KEY, value)
        rows = sql(path, "SELECT value FROM meta WHERE key = ?", KEY)
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


def test_a_live_lease_is_refused_to_everybody_its_holder_too(queue, other):
    assert queue.acquire_worker_lease()
    assert other.acquire_worker_lease() is False
    assert queue.acquire_worker_lease() is False
    assert other.worker_is_alive()


def test_every_queue_name_has_a_lease_of_its_own(queue, path, sql):
    with Queue(path, "mail") as mail:
        assert queue.acquire_worker_lease()
        assert not mail.worker_is_alive()
        assert mail.acquire_worker_lease()
        assert sql(path, "SELECT key FROM meta ORDER BY key") == [["worker_lease"], ["worker_lease:mail"]]


def test_a_lease_lives_for_its_own_time_whatever_others_ask_for(queue, other, clock):
    assert queue.acquire_worker_lease(ttl=timedelta(seconds=300))
    clock.advance(299.999)
    assert other.worker_is_alive()
    assert not other.acquire_worker_lease(ttl=1)
    clock.advance(0.001)
    assert not other.worker_is_alive()
    assert other.acquire_worker_lease(ttl=1)


def test_refreshing_renews_it(queue, other, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(50)
    assert queue.refresh_worker_lease() is True
    clock.advance(50)
    assert not other.acquire_worker_lease()


def test_releasing_frees_it(queue, other, stored):
    queue.acquire_worker_lease()
    assert queue.release_worker_lease() is True
    assert stored() is None
    assert queue.release_worker_lease() is False
    assert other.acquire_worker_lease()


def test_who_holds_nothing_can_neither_refresh_nor_release(queue, other, stored):
    queue.acquire_worker_lease()
    before = stored()
    assert other.refresh_worker_lease() is False
    assert other.release_worker_lease() is False
    assert stored() == before


def test_who_lost_the_lease_can_neither_refresh_nor_release_it(queue, other, stored, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(60)
    assert other.acquire_worker_lease()
    before = stored()
    assert queue.refresh_worker_lease() is False
    assert queue.release_worker_lease() is False
    assert stored() == before
    assert other.refresh_worker_lease()


def test_a_lease_that_ran_out_but_that_nobody_took_is_still_its_holders(queue, other, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(1000)
    assert queue.refresh_worker_lease()
    assert not other.acquire_worker_lease()


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


def test_an_expired_claim_comes_back_whoever_holds_the_worker_lease(queue, other, clock):
    queue.enqueue("x")
    queue.claim()
    other.acquire_worker_lease(ttl=1000)
    clock.advance(60)
    assert queue.claim().attempt == 2


def test_a_drain_keeps_the_lease_alive_while_it_runs(queue, other, stored, clock, until):
    session = Loop([queue], [print], Plan(exclusive=True, lease_ttl=0.3))
    assert session.begin()
    for _ in range(4):
        clock.advance(0.29)
        until(lambda: datetime.fromisoformat(json.loads(stored())["heartbeat"]) == clock.now)
        assert not other.acquire_worker_lease()
    session.close()
    assert other.acquire_worker_lease()


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan"), "60"])
def test_a_lease_lasts_longer_than_nothing(queue, ttl):
    with pytest.raises((TypeError, ValueError), match="ttl"):
        queue.acquire_worker_lease(ttl)
    assert not queue.worker_is_alive()
