"""claim_group: all of one group, each with its receipt."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from membox_queue import NewItem


@pytest.fixture
def batch(queue):
    queue.enqueue("free", priority=9)
    queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "a2", "b1", "a3"))
    return queue.claim_group("a")


def contents(items):
    return [item.content for item in items]


def test_it_takes_everything_pending_of_one_free_group_in_order(queue, batch):
    assert contents(batch) == ["a1", "a2", "a3"]
    queue.mark_done(queue.claim())
    assert contents(queue.claim_group()) == ["b1"]
    assert queue.claim_group() == []
    assert queue.mark_done_many(batch) == 3


def test_an_item_without_a_group_comes_alone_when_it_is_first(queue):
    queue.enqueue_many(["free", "alone", NewItem("a1", group="a"), NewItem("urgent", priority=9)])
    queue.enqueue("a2", group="a")
    batches = [queue.claim_group() for _ in range(5)]
    assert [contents(batch) for batch in batches] == [["urgent"], ["free"], ["alone"], ["a1", "a2"], []]
    assert [queue.mark_done_many(batch) for batch in batches] == [1, 1, 1, 2, 0]


def test_whoever_waits_for_any_group_is_given_an_item_without_one(queue):
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(queue.claim_group, wait=30)
        queue.enqueue("free")
        assert contents(waiting.result(30)) == ["free"]


def test_failing_one_gives_the_later_ones_back_uncounted(queue, batch):
    assert queue.mark_done(batch[0])
    assert queue.mark_failed(batch[1], "no")
    assert not queue.mark_done(batch[2])
    third = queue.get(batch[2].id)
    assert (third.status, third.retries) == ("pending", 0)
    assert contents(queue.claim_many(9)) == ["free", "b1", "a3"]


def test_a_group_of_which_something_is_in_work_is_not_free(queue):
    queue.enqueue_many([NewItem("a1", group="a"), NewItem("a2", group="a")])
    held = queue.claim()
    assert queue.claim_group() == []
    queue.mark_done(held)
    assert contents(queue.claim_group()) == ["a2"]


def test_an_item_that_waits_for_a_retry_ends_the_batch(queue):
    queue.enqueue_many(NewItem(name, group="a") for name in ("a1", "a2"))
    queue.mark_failed(queue.claim(), "later", retry_in=60)
    assert queue.claim_group() == []


def test_a_batch_whose_worker_vanished_comes_back_in_order(queue, clock):
    queue.enqueue_many(NewItem(name, group="a") for name in ("a1", "a2", "a3"))
    queue.claim_group(lease=10)
    clock.advance(11)
    assert contents(queue.claim_group()) == ["a1", "a2", "a3"]


def test_a_group_can_be_named(queue):
    queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "b1", "b2"))
    assert queue.claim_group("nobody") == []
    assert contents(queue.claim_group("b")) == ["b1", "b2"]
    assert queue.claim_group("b") == []
    assert contents(queue.claim_group()) == ["a1"]


def test_a_limit_leaves_the_rest_for_later(queue):
    queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "a2", "a3", "b1"))
    first = queue.claim_group(limit=2)
    assert contents(first) == ["a1", "a2"]
    assert queue.claim_group("a", limit=2) == []
    assert contents(queue.claim_group(limit=2)) == ["b1"]
    queue.mark_done_many(first)
    assert contents(queue.claim_group(group="a", limit=2)) == ["a3"]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1.5}, {"limit": "2"}, {"group": ""}, {"group": 5}])
def test_wrong_arguments_take_nothing(queue, wrong):
    queue.enqueue("x", group="a")
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        queue.claim_group(**wrong)
    assert queue.counts()["processing"] == 0


def test_cancelling_one_leaves_the_others_to_their_holder(queue, batch):
    assert queue.cancel(batch[1].id)
    assert [queue.mark_done(item) for item in batch] == [True, False, True]
    assert queue.get(batch[1].id).status == "cancelled"


def test_deleting_or_purging_what_waits_leaves_the_batch_alone(queue, batch):
    queue.enqueue_many([NewItem("a4", group="a"), NewItem("a5", group="a")])
    assert queue.delete(batch[1].id)
    queue.purge("pending")
    queue.pause()
    assert queue.mark_failed(batch[0], "no")
    assert (batch[2].lost, queue.claim_group()) == (True, [])
    queue.resume()
    assert contents(queue.claim_group()) == ["a3"]


def test_an_item_that_falls_due_after_the_claim_waits_for_the_whole_batch(queue, clock):
    queue.enqueue("later", group="a", delay=10)
    queue.enqueue_many(NewItem(name, group="a") for name in ("a1", "a2"))
    batch = queue.claim_group(lease=600)
    assert contents(batch) == ["a1", "a2"]
    clock.advance(11)
    assert queue.mark_done(batch[0])
    assert (queue.claim(), queue.claim_group()) == (None, [])
    assert queue.release(batch[1])
    assert contents(queue.claim_group()) == ["later", "a2"]


@pytest.fixture
def inbox(queue):
    """Two agents' messages; the first one's come first."""
    queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "b1", "a2", "b2"))
    return queue


def test_a_named_group_of_which_something_is_in_work_is_not_free(inbox):
    held = inbox.claim(group="b")
    assert inbox.claim_group(group="b") == []
    inbox.mark_failed(held, "not now", retry_in=60)
    assert inbox.claim_group(group="b") == []
    inbox.run_now(held.id)
    assert contents(inbox.claim_group(group="b")) == ["b1", "b2"]


def test_waiting_for_a_named_group_is_not_ended_by_another(inbox):
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(inbox.claim_group, group="c", wait=30)
        inbox.enqueue("a3", group="a")
        assert not waiting.done()
        inbox.enqueue("c1", group="c")
        assert contents(waiting.result(30)) == ["c1"]


def test_failing_one_of_a_named_group_gives_the_later_ones_back(inbox):
    first, second = inbox.claim_group(group="b")
    inbox.mark_failed(first, "no")
    assert not inbox.mark_done(second)
    assert contents(inbox.claim_group(group="b")) == ["b2"]
