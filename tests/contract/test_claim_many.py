"""claim_many: up to so many items in one transaction."""

from datetime import timedelta

import pytest


def test_items_come_in_the_order_of_single_claims(queue):
    for content, priority in [("a", 0), ("b", 9), ("c", 0), ("d", 0)]:
        queue.enqueue(content, priority=priority)
    assert [item.content for item in queue.claim_many(3)] == ["b", "a", "c"]
    assert [item.content for item in queue.claim_many(3)] == ["d"]
    assert queue.claim_many(3) == []


def test_each_item_has_a_receipt_of_its_own(queue):
    queue.enqueue_many(["a", "b"])
    first, second = queue.claim_many(2)
    assert queue.mark_done(first)
    assert not second.lost
    assert queue.mark_failed(second, "x")


def test_the_lease_is_the_queues_or_the_calls(queue, clock):
    queue.enqueue_many(["a", "b"])
    [item] = queue.claim_many(1)
    assert item.lease_until == clock.now + timedelta(seconds=60)
    [item] = queue.claim_many(1, lease=5)
    assert item.lease_until == clock.now + timedelta(seconds=5)


def test_it_can_wait_for_the_first_item(queue, address, start):
    assert queue.claim_many(5, wait=0.02) == []
    enqueuer = start("import sys, membox_queue; membox_queue.Queue(sys.argv[1]).enqueue_many(['a', 'b'])", address)
    assert [item.content for item in queue.claim_many(5, wait=30)] == ["a", "b"]
    assert enqueuer.wait(30) == 0


@pytest.mark.parametrize("limit", [0, -1, 1.5, "2", None, True])
def test_a_limit_is_a_whole_number_of_at_least_one(queue, limit):
    queue.enqueue("x")
    with pytest.raises((TypeError, ValueError), match="limit"):
        queue.claim_many(limit)
    assert queue.counts()["pending"] == 1
