"""The worker lease: the right to be the one worker that drains a queue."""

from datetime import timedelta

import pytest


@pytest.fixture
def other(open_queue):
    with open_queue() as other:
        yield other


def test_a_live_lease_is_refused_to_everybody_its_holder_too(queue, other):
    assert queue.acquire_worker_lease()
    assert other.acquire_worker_lease() is False
    assert queue.acquire_worker_lease() is False
    assert other.worker_is_alive()


def test_every_queue_name_has_a_lease_of_its_own(queue, open_queue):
    with open_queue("mail") as mail:
        assert queue.acquire_worker_lease()
        assert not mail.worker_is_alive()
        assert mail.acquire_worker_lease()
        assert queue.release_worker_lease()
        assert mail.worker_is_alive()


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


def test_releasing_frees_it(queue, other):
    queue.acquire_worker_lease()
    assert queue.release_worker_lease() is True
    assert not other.worker_is_alive()
    assert queue.release_worker_lease() is False
    assert other.acquire_worker_lease()


def test_who_holds_nothing_can_neither_refresh_nor_release(queue, other):
    queue.acquire_worker_lease()
    assert other.refresh_worker_lease() is False
    assert other.release_worker_lease() is False
    assert other.worker_is_alive()
    assert not other.acquire_worker_lease()
    assert queue.refresh_worker_lease()


def test_who_lost_the_lease_can_neither_refresh_nor_release_it(queue, other, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(60)
    assert other.acquire_worker_lease()
    assert queue.refresh_worker_lease() is False
    assert queue.release_worker_lease() is False
    assert other.refresh_worker_lease()


def test_a_lease_that_ran_out_but_that_nobody_took_is_still_its_holders(queue, other, clock):
    queue.acquire_worker_lease(ttl=60)
    clock.advance(1000)
    assert queue.refresh_worker_lease()
    assert not other.acquire_worker_lease()


def test_an_expired_claim_comes_back_whoever_holds_the_worker_lease(queue, other, clock):
    queue.enqueue("x")
    queue.claim()
    other.acquire_worker_lease(ttl=1000)
    clock.advance(60)
    assert queue.claim().attempt == 2


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan"), "60"])
def test_a_lease_lasts_longer_than_nothing(queue, ttl):
    with pytest.raises((TypeError, ValueError), match="ttl"):
        queue.acquire_worker_lease(ttl)
    assert not queue.worker_is_alive()
