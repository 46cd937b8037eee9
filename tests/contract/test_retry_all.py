"""retry_all: every failed item comes back, whatever its ceiling."""

from datetime import timedelta

import pytest
from membox_queue import NewItem, QueueClosedError


def fail(queue, *, times=1, give_up=False, **options):
    """Enqueue an item and let it fail so often, the last time for now."""
    qid = queue.enqueue("x", **options)
    for left in reversed(range(times)):
        queue.mark_failed(queue.claim(), "boom", retry_in=0 if left else None, give_up=give_up and not left)
    return qid


def test_dead_letters_come_back_with_a_fresh_allowance_in_their_old_place(queue):
    dead, given_up = fail(queue, times=3), fail(queue, give_up=True)
    last = queue.enqueue("behind them")
    assert queue.retry_failed() == 0
    assert queue.retry_all() == 2
    assert [(queue.get(qid).status, queue.get(qid).retries, queue.get(qid).error) for qid in (dead, given_up)] == [
        ("pending", 0, "boom"),
        ("pending", 0, "boom"),
    ]
    claimed = queue.claim_many(9)
    assert [(item.id, item.attempt) for item in claimed] == [(dead, 4), (given_up, 2), (last, 1)]


def test_only_failed_items_of_this_queue_come_back(queue, open_queue):
    cancelled, done, waiting = queue.enqueue_many(["a", "b", NewItem("c", delay=60)])
    queue.cancel(cancelled)
    queue.mark_done(queue.claim())
    with open_queue("other") as other:
        fail(other, times=3)
        assert queue.retry_all() == 0
        assert other.counts()["failed"] == 1
    assert [queue.get(qid).status for qid in (cancelled, done, waiting)] == ["cancelled", "done", "pending"]


@pytest.mark.parametrize("delay", [30, timedelta(seconds=30)])
def test_they_may_be_put_off(queue, clock, delay):
    qid = fail(queue, times=3)
    assert queue.retry_all(delay=delay) == 1
    assert queue.claim() is None
    clock.advance(31)
    assert queue.claim().id == qid


def test_a_key_in_use_stays_and_of_several_with_one_key_the_latest_comes_back(queue):
    older, latest = (fail(queue, times=3, key="k") for _ in range(2))
    assert queue.retry_all() == 1
    assert [queue.get(qid).status for qid in (older, latest)] == ["failed", "pending"]
    assert queue.retry_all() == 0


@pytest.mark.parametrize(
    ("wrong", "error"), [({"delay": -1}, ValueError), ({"delay": "1"}, TypeError), ({"max_retries": 3}, TypeError)]
)
def test_wrong_arguments_bring_nothing_back(queue, wrong, error):
    fail(queue, times=3)
    with pytest.raises(error):
        queue.retry_all(**wrong)
    assert queue.counts()["failed"] == 1


def test_a_closed_queue_says_so(queue):
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.retry_all()
