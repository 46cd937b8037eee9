"""A claim that has plain work at hand still notices everything that becomes due meanwhile."""

import pytest
from membox_queue import Next, Rate, RetryLater

SOON = 0.5
"""Less than the second after which a claim looks at everything anyway."""


@pytest.fixture
def busy_queue(queue, clock):
    """A queue whose last claims found plain work and nothing due."""
    queue.enqueue_many(["plain"] * 40)
    for _ in range(3):
        queue.mark_done(queue.claim())
    return queue


def contents_of_the_next(queue, count=2):
    return [item.content for item in queue.claim_many(count)]


def delayed(queue):
    queue.enqueue("due", priority=1, delay=SOON)


def replaced(queue):
    queue.enqueue("old", key="k", priority=1, delay=2 * SOON)
    queue.enqueue("due", key="k", priority=1, delay=SOON, on_duplicate="replace")


def put_off(queue):
    queue.run_later(queue.enqueue("due", priority=1), SOON)


def failed_and_retried(queue):
    queue.enqueue("due", priority=1)
    queue.mark_failed(queue.claim(), "again", retry_in=SOON)


def raised_retry_later(queue):
    queue.enqueue("due", priority=1)

    def handle(item):
        raise RetryLater(SOON)

    queue.drain(handle, limit=1)


def released_with_a_delay(queue):
    queue.enqueue("due", priority=1)
    queue.release(queue.claim(), delay=SOON)


def moved_with_a_delay(queue):
    queue.enqueue("first", priority=1)
    queue.mark_done(queue.claim(), Next("due", delay=SOON))


def enqueued_by_an_item(queue):
    queue.enqueue("parent", priority=1)

    def handle(item):
        item.enqueue("due", priority=1, delay=SOON)

    queue.drain(handle, limit=1)


def held_by_a_short_lease(queue):
    queue.enqueue("due", priority=1)
    queue.claim(lease=SOON)


def shortened_lease(queue):
    queue.enqueue("due", priority=1)
    queue.extend(queue.claim(), SOON)


def scheduled(queue):
    queue.schedule("tick", "due", every=SOON, priority=1)


def freed_with_a_delay(queue):
    gate = queue.enqueue("gate", priority=2)
    queue.enqueue("due", priority=1, delay=SOON, after=[gate])
    queue.mark_done(queue.claim())


ACTIONS = [
    delayed,
    replaced,
    put_off,
    failed_and_retried,
    raised_retry_later,
    released_with_a_delay,
    moved_with_a_delay,
    enqueued_by_an_item,
    held_by_a_short_lease,
    shortened_lease,
    scheduled,
    freed_with_a_delay,
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
def test_what_is_due_soon_is_claimed_then(busy_queue, clock, action):
    action(busy_queue)
    assert contents_of_the_next(busy_queue) == ["plain", "plain"]
    clock.advance(0.8 * SOON)
    assert contents_of_the_next(busy_queue) == ["plain", "plain"]
    clock.advance(0.4 * SOON)
    assert contents_of_the_next(busy_queue) == ["due", "plain"]


def test_the_rate_of_a_group_is_kept(busy_queue, clock):
    busy_queue.configure(group_rate=Rate(1, SOON))
    for content in ["first", "second"]:
        busy_queue.enqueue(content, group="g", priority=1)
    busy_queue.mark_done(busy_queue.claim())
    assert contents_of_the_next(busy_queue) == ["plain", "plain"]
    clock.advance(1.2 * SOON)
    assert contents_of_the_next(busy_queue) == ["second", "plain"]


def test_a_pause_is_kept(busy_queue):
    busy_queue.pause()
    assert busy_queue.claim() is None
    busy_queue.resume()
    assert busy_queue.claim().content == "plain"


def test_an_item_that_expires_is_cancelled(busy_queue, clock):
    id = busy_queue.enqueue("late", priority=-1, expires=SOON)
    assert contents_of_the_next(busy_queue) == ["plain", "plain"]
    clock.advance(1.2 * SOON)
    busy_queue.claim()
    assert busy_queue.get(id).status == "cancelled"


def test_what_depends_on_a_failure_is_cancelled(busy_queue):
    failed = busy_queue.enqueue("fails", priority=1)
    busy_queue.mark_failed(busy_queue.claim(), "no")
    id = busy_queue.enqueue("dependent", priority=-1, after=[failed])
    busy_queue.claim()
    assert busy_queue.get(id).status == "cancelled"
