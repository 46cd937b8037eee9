"""Clocks that jump: forward may redeliver, backward holds nothing longer than a lease, and any year will do."""

import random
import threading

import pytest
from membox_queue import Queue, RetryLater

LEASE = 60
DAY = 86_400

MOMENTS = {
    "today": None,
    "the end of 31 bits": 2**31 * 1000 - 500,
    "the end of 32 bits": 2**32 * 1000 - 500,
    "the year 9999": 253_400_000_000_000,
    "just after 1970": 500,
    "before 1970": -10 * DAY * 1000,
}

JUMPS = (-100 * 365 * DAY, -DAY, -LEASE - 1, -LEASE + 1, -1, 1, LEASE - 1, LEASE + 1, DAY, 100 * 365 * DAY)


@pytest.fixture
def at(clock):
    """Put the clock to a moment."""

    def at(moment):
        if MOMENTS[moment] is not None:
            clock.advance((MOMENTS[moment] - clock.ms) / 1000)

    return at


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("jump", JUMPS)
def test_whatever_the_clock_does_an_item_is_free_within_a_lease(queue, clock, at, moment, jump):
    at(moment)
    queue.enqueue("x")
    first = queue.claim()
    clock.advance(jump)
    second = queue.claim()
    if second is None:
        clock.advance(LEASE)
        second = queue.claim()
    assert second.attempt == 2
    assert not queue.mark_done(first)
    assert queue.mark_done(second)
    assert queue.claim() is None


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("jump", JUMPS)
def test_whatever_the_clock_does_the_worker_lease_is_free_two_lengths_later(path, clock, at, moment, jump):
    at(moment)
    with Queue(path) as one, Queue(path) as other:
        assert one.acquire_worker_lease(ttl=LEASE)
        clock.advance(jump)
        if not other.acquire_worker_lease(ttl=LEASE):
            clock.advance(2 * LEASE)
            assert other.acquire_worker_lease(ttl=LEASE)
        assert not one.refresh_worker_lease()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("jump", [jump for jump in JUMPS if jump < 0])
def test_what_was_enqueued_in_a_wrong_future_is_not_held_up(queue, clock, at, moment, jump):
    at(moment)
    queue.enqueue("x")
    queue.release(queue.claim())
    clock.advance(jump)
    queue.enqueue("y")
    assert [queue.claim().content, queue.claim().content] == ["x", "y"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_every_verb_that_has_to_do_with_time_works_at_any_time(path, clock, at, moment):
    at(moment)
    with Queue(path, keep_for=LEASE) as queue:
        queue.schedule("tick", "tick", every=LEASE)
        queue.enqueue("later", delay=LEASE)
        item = queue.get(1)
        assert item.run_at is not None
        assert queue.claim() is None
        clock.advance(LEASE)
        claimed = {item.content: item for item in queue.claim_many(5)}
        assert claimed.keys() == {"later", "tick"}
        assert queue.extend(claimed["later"], 2 * LEASE)
        assert queue.mark_failed(claimed["later"], "x", retry_in=LEASE)
        assert queue.mark_done(claimed["tick"])
        assert queue.history(1)[-1].ending == "postponed"
        assert queue.stats()["next_due_at"] is not None
        clock.advance(LEASE)
        assert "later" in {item.content for item in queue.claim_many(5)}
        with queue.lock("nightly", ttl=LEASE):
            assert not queue.lock("nightly").acquire()
        assert queue.acquire_worker_lease()
        assert queue.worker_is_alive()
        clock.advance(LEASE)
        queue.tend()
        assert queue.counts()["done"] == 0


@pytest.fixture
def jumping(clock, seed):
    """Let the clock jump to and fro every few milliseconds until the test is over."""
    over, threads = threading.Event(), []
    dice = random.Random(seed)

    def jump(*by):
        while not over.wait(0.003):
            clock.advance(dice.choice((-1, 1)) * dice.choice(by))

    def start(*by):
        threads.append(threading.Thread(target=jump, args=by))
        threads[0].start()

    yield start
    over.set()
    threads[0].join()


ITEMS = pytest.mark.parametrize(
    "items", [pytest.param(150, id="short"), pytest.param(3000, id="long", marks=pytest.mark.proof)]
)


@ITEMS
@pytest.mark.parametrize("by", [(1,), (1, LEASE, DAY)])
@pytest.mark.timeout(1800)
def test_a_jittering_clock_costs_redeliveries_and_nothing_else(path, jumping, items, by):
    jumping(*by)
    accepted, given = [], []
    with Queue(path, durability="normal", lease=LEASE, max_retries=10**6) as queue:
        queue.enqueue_many(range(items))

        def work():
            while queue.pending():
                if item := queue.claim():
                    given.append(item.id)
                    if queue.mark_done(item):
                        accepted.append(item.id)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert queue.counts()["done"] == items
    assert sorted(accepted) == list(range(1, items + 1))
    print(f"{items} items, {len(given) - items} redeliveries")


@ITEMS
@pytest.mark.parametrize("by", [(1,), (1, LEASE, DAY)])
@pytest.mark.timeout(1800)
def test_a_drain_under_a_jittering_clock_ends_and_leaves_nothing(path, jumping, items, by):
    jumping(*by)

    def handler(item):
        if item.attempt % 5 == 1:
            raise RetryLater(0, count=False)
        return item.attempt

    with Queue(path, durability="normal", lease=LEASE, max_retries=10**6) as queue:
        queue.enqueue_many(range(items))
        done = 0
        while queue.pending():
            done += queue.drain(handler, concurrency=4, exclusive=False).done
        assert queue.counts()["done"] == done == items
