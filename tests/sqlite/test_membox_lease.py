"""The worker lease of membox's drop-in, shared with membox's own code."""

import os
import socket
from datetime import UTC, datetime, timedelta

import pytest
from membox_queue import Queue

from sqlite.membox_store import lease_of, put_lease


def test_a_free_lease_is_taken_and_written_as_membox_writes_it(store):
    assert store.worker_is_alive() is False
    assert store.acquire_worker_lease() is True
    assert store.worker_is_alive() is True
    lease = lease_of(store)
    assert (lease["pid"], lease["hostname"]) == (os.getpid(), socket.gethostname())
    assert abs(datetime.now(UTC) - datetime.fromisoformat(lease["heartbeat"])) < timedelta(seconds=60)


def test_a_live_lease_of_another_process_is_refused(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    put_lease(store)
    before = lease_of(store)
    assert store.acquire_worker_lease() is False
    assert store.worker_is_alive() is True
    assert lease_of(store) == before
    assert store.queue_counts()["processing"] == 1


@pytest.mark.parametrize(
    ("pid", "hostname", "is_mine"),
    [
        (os.getpid(), socket.gethostname(), True),
        (os.getpid(), "elsewhere", False),
        (os.getpid() + 1, socket.gethostname(), False),
        (str(os.getpid()), socket.gethostname(), False),
    ],
    ids=["ours", "another host", "another process", "a pid as text"],
)
def test_a_lease_is_ours_by_process_and_host(store, pid, hostname, is_mine):
    put_lease(store, pid=pid, hostname=hostname)
    assert store.acquire_worker_lease() is is_mine
    put_lease(store, pid=pid, hostname=hostname)
    store.release_worker_lease()
    assert store.worker_is_alive() is not is_mine


def test_a_process_may_acquire_again_what_it_holds(store, make_store):
    assert store.acquire_worker_lease()
    assert store.acquire_worker_lease()
    assert make_store().acquire_worker_lease()


def test_how_long_a_heartbeat_lives_is_for_the_one_who_asks_to_say(store):
    put_lease(store, age=30)
    assert store.worker_is_alive()
    assert store.worker_is_alive(ttl=31 + 60)
    assert not store.worker_is_alive(ttl=29)
    assert not store.worker_is_alive(0)
    assert not store.acquire_worker_lease()
    assert store.acquire_worker_lease(ttl=29)
    assert store.worker_is_alive(ttl=25)


def test_our_own_lease_is_as_old_as_its_heartbeat(store, fake_clock):
    store.acquire_worker_lease(ttl=300)
    fake_clock.advance(59.999)
    assert store.worker_is_alive()
    fake_clock.advance(0.001)
    assert not store.worker_is_alive()
    assert store.worker_is_alive(ttl=300)
    store.refresh_worker_lease()
    assert store.worker_is_alive()


UNREADABLE = ["not json", "[]", '"text"', "{}", '{"pid": 1, "hostname": "x"}', '{"heartbeat": 5}', '{"heartbeat": "?"}']


@pytest.mark.parametrize("value", UNREADABLE)
def test_a_lease_that_cannot_be_read_is_expired(store, value):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    store.sql("INSERT INTO meta (key, value) VALUES ('worker_lease', ?)", value)
    assert store.worker_is_alive() is False
    assert store.acquire_worker_lease() is True
    assert store.queue_counts()["pending"] == 1


@pytest.mark.parametrize("zone", ["+00:00", ""])
def test_a_heartbeat_without_a_zone_is_utc(store, zone):
    heartbeat = (datetime.now(UTC) - timedelta(seconds=30)).replace(tzinfo=None).isoformat() + zone
    put_lease(store, heartbeat=heartbeat)
    assert store.worker_is_alive()
    assert not store.worker_is_alive(ttl=20)


def test_taking_over_an_expired_lease_returns_everything_in_process(store, make_store):
    for content in "abcd":
        store.enqueue_ingest(content)
    store.mark_done(store.claim_next_pending()["id"])
    store.claim_next_pending()
    make_store().claim_next_pending()
    store.sql("UPDATE ingest_queue SET status = 'processing', started_at = datetime('now') WHERE id = 4")
    put_lease(store, age=120)
    assert store.acquire_worker_lease() is True
    assert store.queue_counts() == {"pending": 3, "processing": 0, "done": 1, "failed": 0}
    rows = store.sql("SELECT id, retries, started_at FROM ingest_queue WHERE status = 'pending' ORDER BY id")
    assert rows == [(2, 0, None), (3, 0, None), (4, 0, None)]
    assert [store.claim_next_pending()["id"] for _ in range(3)] == [2, 3, 4]


def test_taking_over_our_own_lease_returns_everything_in_process(store):
    store.enqueue_ingest("a")
    store.acquire_worker_lease()
    store.claim_next_pending()
    assert store.acquire_worker_lease()
    assert store.queue_counts()["pending"] == 1


def test_acquiring_a_free_lease_returns_nothing(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    assert store.acquire_worker_lease()
    assert store.queue_counts()["processing"] == 1


def test_what_was_cancelled_in_process_is_not_brought_back_by_a_takeover(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    with Queue(store.db_path) as queue:
        assert queue.cancel(1)
        put_lease(store, age=120)
        assert store.acquire_worker_lease()
        assert queue.get(1).status == "cancelled"


def test_refreshing_does_not_steal_the_lease_of_another_process(store):
    put_lease(store)
    before = lease_of(store)
    assert store.refresh_worker_lease() is None
    assert lease_of(store) == before


def test_refreshing_writes_a_lease_when_there_is_none(store):
    store.refresh_worker_lease()
    assert store.worker_is_alive()
    store.release_worker_lease()
    assert not store.worker_is_alive()


def test_releasing_deletes_our_lease_and_leaves_that_of_others(store):
    assert store.release_worker_lease() is None
    store.acquire_worker_lease()
    store.release_worker_lease()
    assert lease_of(store) is None
    put_lease(store)
    store.release_worker_lease()
    assert store.worker_is_alive()
    put_lease(store, age=1000)
    store.release_worker_lease()
    assert lease_of(store)["pid"] == 999_999
    store.sql("UPDATE meta SET value = 'rubbish' WHERE key = 'worker_lease'")
    store.release_worker_lease()
    assert lease_of(store) is None


def test_memboxs_own_code_sees_our_lease_and_we_see_its(store):
    store.acquire_worker_lease()
    lease = lease_of(store)
    heartbeat = datetime.fromisoformat(lease["heartbeat"])
    assert heartbeat.tzinfo is not None
    assert lease["pid"] == os.getpid()
    store.sql("DELETE FROM meta WHERE key = 'worker_lease'")
    assert not store.worker_is_alive()
