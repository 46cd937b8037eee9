"""extend: the lease ends so many seconds from now."""

from datetime import timedelta

import pytest


@pytest.fixture
def item(queue, clock):
    queue.enqueue("x")
    return queue.claim()


def test_the_lease_ends_that_long_from_now(queue, item, clock):
    clock.advance(30)
    assert queue.extend(item, 60) is True
    assert queue.get(item.id).lease_until == clock.now + timedelta(seconds=60)
    clock.advance(59.999)
    assert queue.claim() is None
    clock.advance(0.001)
    assert queue.claim().attempt == 2


def test_a_lease_can_be_made_shorter(queue, item, clock):
    assert queue.extend(item, timedelta(seconds=1))
    clock.advance(1)
    assert queue.claim().attempt == 2


def test_a_long_extension_is_not_taken_for_a_clock_that_was_put_back(queue, item, clock):
    assert queue.extend(item, 86400)
    clock.advance(5000)
    assert queue.claim() is None
    assert not item.lost


def test_a_lease_that_ran_out_can_be_extended_until_somebody_takes_the_item(queue, item, clock):
    clock.advance(1000)
    assert queue.extend(item, 60)
    assert queue.claim() is None
    clock.advance(60)
    assert queue.claim() is not None
    assert queue.extend(item, 60) is False
    assert item.lost


def test_a_finished_item_has_no_lease_to_extend(queue, item):
    queue.mark_done(item)
    assert queue.extend(item, 60) is False
    assert queue.get(item.id).lease_until is None


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "60", None])
def test_a_lease_lasts_longer_than_nothing(queue, item, seconds):
    with pytest.raises((TypeError, ValueError)):
        queue.extend(item, seconds)
    assert queue.get(item.id).lease_until == item.lease_until


def test_who_wants_to_end_a_lease_is_told_of_release(queue, item):
    with pytest.raises(ValueError, match=r"release\(\)"):
        queue.extend(item, 0)


def test_while_the_claim_is_kept_an_extension_only_makes_it_longer(queue, clock):
    queue.enqueue("x")
    with queue.claim(lease=60) as item:
        assert queue.extend(item, 1)
        clock.advance(59)
        assert queue.claim() is None
        assert queue.extend(item, 3600)
        clock.advance(3599)
        assert queue.claim() is None
    assert queue.get(item.id).status == "done"
