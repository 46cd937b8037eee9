"""release: given back, nothing counted."""

from datetime import timedelta

import pytest


def test_a_released_item_is_pending_again_in_its_old_place(queue):
    first, second = queue.enqueue_many(["a", "b"])
    item = queue.claim()
    assert queue.release(item) is True
    back = queue.get(first)
    assert (back.status, back.retries, back.error, back.worker) == ("pending", 0, None, None)
    assert (back.started_at, back.lease_until) == (None, None)
    assert [item.id for item in queue.claim_many(2)] == [first, second]


def test_the_attempt_is_not_taken_back(queue):
    queue.enqueue("x")
    for attempt in (1, 2, 3, 4, 5):
        item = queue.claim()
        assert (item.attempt, item.retries) == (attempt, 0)
        queue.release(item)


def test_it_can_be_put_off(queue, clock):
    queue.enqueue("x")
    queue.release(queue.claim(), delay=10)
    assert queue.get(1).run_at == clock.now + timedelta(seconds=10)
    assert queue.claim() is None
    clock.advance(10)
    assert queue.claim().retries == 0


def test_an_earlier_error_stays_readable(queue):
    queue.enqueue("x")
    queue.mark_failed(queue.claim(), "boom", retry_in=0)
    queue.release(queue.claim())
    assert (queue.get(1).error, queue.get(1).retries) == ("boom", 1)


def test_a_released_item_can_be_finished_only_by_its_next_holder(queue):
    queue.enqueue("x")
    item = queue.claim()
    assert queue.release(item)
    assert queue.release(item) is False
    assert queue.mark_done(item) is False
    assert queue.mark_done(queue.claim())


@pytest.mark.parametrize("delay", [-1, float("inf"), "5"])
def test_a_delay_that_is_none_is_refused(queue, delay):
    queue.enqueue("x")
    item = queue.claim()
    with pytest.raises((TypeError, ValueError), match="delay"):
        queue.release(item, delay=delay)
    assert queue.get(1).status == "processing"
