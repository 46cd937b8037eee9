"""Groups: one at a time, in order, across processes, kept by the database itself."""

import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from membox_queue import NewItem, Retry, SettingsConflictError


def take(queue, **options):
    item = queue.claim(**options)
    return None if item is None else item.content


def test_items_of_a_group_run_one_at_a_time_and_groups_in_parallel(queue):
    queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "a2", "b1", "b2"))
    first = queue.claim()
    assert (first.content, first.group) == ("a1", "a")
    assert take(queue) == "b1"
    assert queue.claim() is None
    queue.mark_done(first)
    assert take(queue) == "a2"


def test_inside_a_group_ids_decide_and_between_heads_priority_counts(queue):
    queue.enqueue("a1", group="a")
    queue.enqueue("a2", group="a", priority=9)
    queue.enqueue("b1", group="b", priority=5)
    queue.enqueue("free", priority=1)
    order = []
    while (item := queue.claim()) is not None:
        order.append(item.content)
        queue.mark_done(item)
    assert order == ["b1", "free", "a1", "a2"]


def test_an_item_that_waits_for_its_first_delay_does_not_hold_its_group_up(queue, clock):
    queue.enqueue("later", group="a", delay=60)
    queue.enqueue("now", group="a")
    item = queue.claim(lease=600)
    assert item.content == "now"
    clock.advance(61)
    assert queue.claim() is None
    queue.mark_done(item)
    assert take(queue) == "later"


def test_a_delayed_item_that_falls_due_takes_its_place_by_id(queue, clock):
    queue.enqueue("later", group="a", delay=60)
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    queue.mark_done(queue.claim())
    clock.advance(61)
    assert take(queue) == "later"


def test_an_item_that_waits_for_a_retry_holds_its_group_up(open_queue, clock):
    with open_queue(retry=Retry(max=3, base=10, jitter=0)) as queue:
        queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
        queue.mark_failed(queue.claim(), "again")
        assert queue.claim() is None
        clock.advance(11)
        assert take(queue) == "one"


@pytest.mark.parametrize("ending", ["fail", "cancel", "delete"])
def test_what_ends_for_good_frees_its_group(queue, ending):
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    if ending == "fail":
        queue.mark_failed(queue.claim(), "no")
    elif ending == "cancel":
        queue.cancel(1)
    else:
        queue.delete(1)
    assert take(queue) == "two"


def test_a_lost_lease_gives_the_head_back_before_its_followers(queue, clock):
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    queue.claim(lease=10)
    clock.advance(11)
    assert take(queue) == "one"
    assert queue.claim() is None


def test_one_group_can_be_claimed_alone(queue):
    queue.enqueue("other", priority=9)
    queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a")])
    assert take(queue, group="a") == "a1"
    assert take(queue, group="a") is None
    assert take(queue, group="nobody") is None


def test_a_limit_that_another_object_stored_changes_nothing_about_the_order(open_queue):
    with open_queue() as queue, open_queue(group_limit=2):
        queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a", priority=5), NewItem("b", priority=1)])
        assert [queue.claim().content for _ in range(3)] == ["a1", "a2", "b"]


def test_inside_a_group_that_runs_several_at_once_priority_counts_nothing(open_queue):
    with open_queue(group_limit=2) as queue:
        queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a", priority=5), NewItem("b", priority=1)])
        assert [queue.claim().content for _ in range(3)] == ["a1", "a2", "b"]
        assert queue.claim() is None


def test_a_group_may_run_as_many_as_its_limit(open_queue):
    with open_queue(group_limit=2) as queue:
        queue.enqueue_many(NewItem(str(number), group="a") for number in range(4))
        first, second = queue.claim(), queue.claim()
        assert queue.claim() is None
        queue.mark_done(second)
        assert take(queue) == "2"
        queue.mark_done(first)
        assert take(queue) == "3"
    with pytest.raises(SettingsConflictError, match="group_limit=2"):
        open_queue(group_limit=3)


def test_a_limit_given_later_opens_groups_that_wait(open_queue):
    with open_queue() as queue:
        queue.enqueue_many(NewItem(str(number), group="a") for number in range(3))
        assert take(queue) == "0"
        assert queue.claim() is None
        with open_queue(group_limit=3) as wider:
            assert [take(wider), take(wider), take(wider)] == ["1", "2", None]


def test_group_counts_tell_what_is_unfinished(queue):
    queue.enqueue_many([NewItem("x", group="b"), NewItem("x", group="a"), NewItem("x", group="a", delay=60), "free"])
    queue.claim(group="a")
    assert queue.group_counts() == {
        "a": {"pending": 1, "processing": 1},
        "b": {"pending": 1, "processing": 0},
    }


def test_whoever_waits_is_woken_when_a_group_is_free_again(queue):
    delays = []
    with ThreadPoolExecutor() as threads:
        queue.enqueue_many(NewItem(number, group="a") for number in range(6))
        held = queue.claim()
        for _ in range(5):
            waiting = threads.submit(queue.claim, wait=30)
            # Not even begun, or in the middle of a sleep of half a second.
            wait([waiting], timeout=0.05)
            ended = time.monotonic()
            queue.mark_done(held)
            held = waiting.result(30)
            delays.append(time.monotonic() - ended)
    assert min(delays) < 0.2


def test_an_empty_group_is_refused(queue):
    with pytest.raises(ValueError, match="group"):
        queue.enqueue("x", group="")
