"""What people do to items and queues: replay, run_now, run_later, purge, prune, pause, max_pending, history."""

import math
import threading
from datetime import UTC, datetime, timedelta

import pytest
from membox_queue import NewItem, QueueFullError, Retry


def test_replay_makes_a_copy_with_a_life_of_its_own(queue):
    queue.enqueue({"a": 1}, project="p", priority=3, group="g", key="k", headers={"h": 1})
    queue.mark_failed(queue.claim(), "no")
    copy = queue.replay(1)
    item = queue.get(copy)
    assert (item.content, item.project, item.priority, item.group, item.headers) == ({"a": 1}, "p", 3, "g", {"h": 1})
    assert (item.status, item.attempt, item.retries, item.key, item.error) == ("pending", 0, 0, None, None)
    assert queue.replay(99) is None


def test_run_now_lets_a_delayed_item_fall_due(queue):
    queue.enqueue("x", delay=3600)
    assert queue.run_now(1)
    assert not queue.run_now(1)
    assert queue.claim().content == "x"
    assert not queue.run_now(1)


def test_run_later_gives_a_pending_item_another_time(queue, clock):
    first, second, third = queue.enqueue_many(["a", NewItem("b", delay=3600), "c"])
    assert queue.run_later(first, 60)
    assert queue.run_later(second, run_at=clock.now + timedelta(seconds=30))
    assert queue.claim().id == third
    assert queue.claim() is None
    clock.advance(30)
    assert queue.claim().id == second
    clock.advance(30)
    assert queue.claim().id == first


def test_what_was_put_off_keeps_its_place_and_frees_its_group(queue, clock):
    first, second, _ = queue.enqueue_many(NewItem(name, group="a") for name in "abc")
    queue.run_later(first, timedelta(seconds=30))
    held = queue.claim()
    assert held.id == second
    clock.advance(30)
    assert queue.claim() is None
    queue.mark_done(held)
    assert queue.claim().id == first


def test_only_what_waits_can_be_put_off(queue, open_queue):
    queue.enqueue("x")
    with open_queue("mail") as mail:
        assert not mail.run_later(1, 60)
    held = queue.claim()
    assert not queue.run_later(1, 60)
    queue.mark_done(held)
    assert not queue.run_later(1, 60)
    assert not queue.run_later(99, 60)


def test_the_past_is_now_also_later(queue, clock):
    queue.enqueue("x", delay=60)
    assert queue.run_later(1, run_at=clock.now - timedelta(days=1))
    assert queue.claim().run_at is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, TypeError),
        ({"delay": -1}, ValueError),
        ({"run_at": datetime(2026, 6, 14)}, ValueError),
        ({"delay": 1, "run_at": datetime(2026, 6, 14, tzinfo=UTC)}, ValueError),
    ],
)
def test_a_time_that_is_none_is_refused(queue, arguments, error):
    queue.enqueue("x")
    with pytest.raises(error, match=r"delay|run_at"):
        queue.run_later(1, **arguments)
    assert queue.claim().id == 1


def test_purge_removes_one_status_of_one_queue(queue, open_queue):
    queue.enqueue_many(["a", "b", "c"])
    queue.mark_failed(queue.claim(), "no")
    with open_queue("mail") as mail:
        mail.enqueue("x")
        assert queue.purge() == 1
        assert queue.purge("pending") == 2
        assert mail.pending() == 1


def test_prune_removes_what_ended_long_ago_and_spares_the_rest(queue, clock):
    queue.enqueue_many(["old", NewItem("keyed", key="k", key_ttl=7200), "failed", "new", "waiting"])
    queue.mark_done_many(queue.claim_many(2))
    queue.mark_failed(queue.claim(), "no")
    clock.advance(3600)
    queue.mark_done(queue.claim())
    assert queue.prune(older_than=3000) == 1
    assert [item.content for item in queue.items()] == ["keyed", "failed", "new", "waiting"]
    assert queue.prune(older_than=3000, status="failed") == 1
    with pytest.raises(ValueError, match="finished"):
        queue.prune(older_than=0, status="pending")


def test_a_paused_queue_gives_nothing_in_any_process_until_it_is_resumed(queue, open_queue):
    queue.enqueue("x")
    assert queue.pause()
    assert not queue.pause()
    with open_queue() as other, open_queue("mail") as mail:
        assert other.paused
        assert other.claim() is None
        assert other.claim(wait=0.01) is None
        assert other.drain(lambda item: None).done == 0
        mail.enqueue("x")
        assert mail.claim() is not None
        assert other.resume()
    assert not queue.resume()
    assert queue.claim().content == "x"


def test_a_queue_beyond_its_bound_still_finds_keys(open_queue):
    with open_queue() as queue:
        first = queue.enqueue("one", key="k")
        queue.enqueue("two")
    with open_queue(max_pending=1) as queue:
        assert queue.enqueue("again", key="k") == first
        with pytest.raises(QueueFullError):
            queue.enqueue("three", key="other")


def test_a_full_queue_refuses_and_takes_nothing_of_a_batch(open_queue):
    with open_queue(max_pending=2) as queue:
        queue.enqueue("one")
        with pytest.raises(QueueFullError, match=r"would hold 3 .* may hold 2"):
            queue.enqueue_many(["two", "three"])
        queue.enqueue("two")
        with pytest.raises(QueueFullError):
            queue.enqueue("three")
        queue.claim()
        queue.enqueue("three")
        assert queue.counts()["pending"] == 2


def test_a_batch_that_can_never_fit_is_refused_without_a_wait(open_queue):
    with open_queue(max_pending=2) as queue:
        with pytest.raises(QueueFullError, match=r"3 new items for the queue .*, which may hold 2"):
            queue.enqueue_many(["a", "b", "c"], wait=math.inf)
        assert queue.enqueue_many([NewItem("a", key="k"), NewItem("b", key="k"), "c"]) == [1, 1, 2]


def test_the_history_says_how_each_attempt_ended(open_queue, clock):
    with open_queue(retry=Retry(max=9, base=0, jitter=0), worker="me") as queue:
        queue.enqueue("x")
        queue.mark_failed(queue.claim(), "first")
        queue.release(queue.claim())
        queue.claim(lease=10)
        clock.advance(11)
        queue.mark_failed(queue.claim(), "last", give_up=True)
        queue.retry(1)
        queue.mark_done(queue.claim())
        history = queue.history(1)
        assert [(entry.attempt, entry.ending, entry.worker) for entry in history] == [
            (1, "postponed", "me"),
            (2, "released", "me"),
            (3, "lost", "me"),
            (4, "failed", "me"),
            (5, "done", "me"),
        ]
        assert [entry.error and entry.error[:5] for entry in history] == ["first", None, "the w", "last", None]
        assert all(entry.started_at <= entry.ended_at for entry in history)
        queue.delete(1)
        assert queue.history(1) == []


def test_the_history_is_bounded(open_queue):
    with open_queue(retry=Retry(max=100, base=0, jitter=0)) as queue:
        queue.enqueue("x")
        for _ in range(30):
            queue.mark_failed(queue.claim(), "no")
        assert [entry.attempt for entry in queue.history(1)] == list(range(11, 31))
        queue.mark_done(queue.claim())
        assert [entry.attempt for entry in queue.history(1)] == list(range(12, 32))


def test_an_enqueue_that_waits_gets_in_when_there_is_room(open_queue):
    with open_queue(max_pending=1) as queue:
        queue.enqueue("one")
        with pytest.raises(QueueFullError):
            queue.enqueue("two", wait=0.01)
        ids = []
        thread = threading.Thread(target=lambda: ids.append(queue.enqueue("two", wait=30)))
        thread.start()
        queue.claim()
        thread.join(30)
        assert ids == [2]
