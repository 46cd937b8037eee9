"""failures: the latest failed items."""

import pytest


def test_they_come_newest_failure_first_whatever_their_ids(queue, clock):
    queue.enqueue_many(["a", "b", "c", "d"])
    first, second, third, fourth = queue.claim_many(4)
    for item in (second, third, first):
        queue.mark_failed(item, f"boom {item.content}")
        clock.advance(1)
    queue.mark_done(fourth)
    assert [(item.id, item.error) for item in queue.failures()] == [(1, "boom a"), (3, "boom c"), (2, "boom b")]


def test_failures_of_the_same_moment_come_highest_id_first(queue, clock):
    queue.enqueue_many(["a", "b"])
    for item in queue.claim_many(2):
        queue.mark_failed(item, "boom")
    assert [item.id for item in queue.failures()] == [2, 1]


def test_five_unless_told_and_only_of_this_queue(queue, open_queue):
    with open_queue("mail") as mail:
        mail.enqueue("m")
        mail.mark_failed(mail.claim(), "boom")
    queue.enqueue_many(range(8))
    for item in queue.claim_many(8):
        queue.mark_failed(item, "boom")
    assert len(queue.failures()) == 5
    assert len(queue.failures(limit=100)) == 8


@pytest.mark.parametrize("limit", [0, -1, "5", 2.5])
def test_a_limit_is_a_whole_number_of_at_least_one(queue, limit):
    with pytest.raises((TypeError, ValueError), match="limit"):
        queue.failures(limit)
