"""stats and compact: the queue at a glance, and its space given back."""

from datetime import UTC, datetime

import pytest
from membox_queue import NewItem, Rate


def test_an_empty_queue(queue):
    stats = queue.stats()
    assert stats["counts"] == queue.counts()
    assert (stats["oldest_pending_age"], stats["next_due_at"], stats["groups"]) == (None, None, 0)
    assert (stats["paused"], stats["worker_is_alive"]) == (False, False)


def test_what_waits_who_works_and_what_comes(queue, clock):
    queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g"), NewItem("c", delay=600)])
    clock.advance(5)
    queue.claim()
    queue.pause()
    queue.acquire_worker_lease()
    stats = queue.stats()
    assert stats["oldest_pending_age"] == 5
    assert isinstance(stats["next_due_at"], datetime)
    assert stats["next_due_at"].tzinfo == UTC
    assert (stats["groups"], stats["paused"], stats["worker_is_alive"]) == (1, True, True)


def test_the_oldest_is_the_one_that_has_waited_longest_for_a_worker(queue, clock):
    queue.enqueue_many([NewItem("delayed", delay=600), NewItem("low", priority=-5)])
    clock.advance(10)
    queue.enqueue("urgent", priority=9)
    queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g")])
    assert queue.stats()["oldest_pending_age"] == 10
    assert queue.claim().content == "urgent"
    assert queue.stats()["oldest_pending_age"] == 10
    queue.delete(2)
    assert queue.stats()["oldest_pending_age"] == 0
    queue.claim()
    clock.advance(5)
    assert queue.stats()["oldest_pending_age"] == 5


def test_delayed_are_those_that_wait_for_a_time(open_queue, queue, clock):
    with open_queue("mail") as mail:
        mail.enqueue("elsewhere", delay=60)
    put_off = [NewItem("delayed", delay=600), NewItem("in a group", delay=600, group="g")]
    first, *_ = queue.enqueue_many([*put_off, "retried", "ready"])
    queue.mark_failed(queue.claim(), "no", retry_in=30)
    assert (queue.stats()["delayed"], queue.counts()["pending"]) == (3, 4)
    clock.advance(30)
    assert queue.stats()["delayed"] == 2
    queue.run_now(first)
    assert queue.stats()["delayed"] == 1
    clock.advance(600)
    assert (queue.stats()["delayed"], queue.counts()["pending"]) == (0, 4)


@pytest.mark.parametrize("group", [None, "g"])
def test_who_waits_for_a_retry_waits_for_no_worker(queue, clock, group):
    queue.enqueue("x", group=group)
    queue.mark_failed(queue.claim(), "no", retry_in=600)
    clock.advance(5)
    assert queue.stats()["oldest_pending_age"] is None
    clock.advance(600)
    queue.claim(group="nobody")
    assert queue.stats()["oldest_pending_age"] == 605


def test_what_has_fallen_due_waits_for_a_worker_also_when_nobody_claims(queue, clock):
    queue.enqueue("x", delay=600)
    clock.advance(600)
    assert queue.stats()["oldest_pending_age"] == 0
    clock.advance(5)
    assert queue.stats()["oldest_pending_age"] == 5


def test_a_group_that_is_held_by_its_rate_waits_all_the_same(open_queue, clock):
    with open_queue(group_rate=Rate(1, per=600)) as queue:
        queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g")])
        queue.mark_done(queue.claim())
        clock.advance(5)
        assert queue.stats()["oldest_pending_age"] == 5


def test_the_next_due_time_is_that_of_whatever_comes_first(open_queue, clock):
    def next_due():
        due = queue.stats()["next_due_at"]
        return due and (due - clock.now).total_seconds()

    with open_queue(rate=Rate(1, per=50), group_rate=Rate(1, per=70)) as queue:
        assert next_due() is None
        queue.schedule("s", "x", every=100)
        assert next_due() == 100
        queue.enqueue("a", group="g")
        queue.mark_done(queue.claim())
        assert next_due() == 100, "nothing waits for the rate"
        queue.enqueue("b", group="g")
        assert next_due() == 70, "the group waits for its rate"
        queue.enqueue("c")
        assert next_due() == 50, "an item waits for the rate of the queue"
        queue.enqueue("d", delay=30)
        assert next_due() == 30
        clock.advance(40)
        assert next_due() == -10, "it has fallen due, and nobody has claimed since"


def test_an_age_is_never_negative(queue, clock):
    queue.enqueue("x")
    clock.advance(-86400)
    assert queue.stats()["oldest_pending_age"] == 0
