"""needed: items that others wait for, or whose result they need, are kept."""

import pickle

import pytest
from membox_queue import NeededItemError


def finish(queue, id, result=None):
    """Claim the next item, which must be this one, and mark it done."""
    item = queue.claim()
    assert item.id == id
    assert queue.mark_done(item, result)


def fail(queue, id):
    item = queue.claim()
    assert item.id == id
    assert queue.mark_failed(item, "boom")


def test_a_needed_item_cannot_be_deleted(queue):
    a = queue.enqueue("a")
    b, c = queue.enqueue("b", after=[a]), queue.enqueue("c", after=[a])
    with pytest.raises(NeededItemError, match=f"item {a} is needed by items {b}, {c}") as raised:
        queue.delete(a)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.id, copy.needed_by, str(copy)) == (a, [b, c], str(raised.value))
    assert queue.get(a)
    finish(queue, a)
    queue.mark_done_many(queue.claim_many(2))
    assert queue.delete(a), "nobody needs it any more"
    assert queue.get(b).after == [None]


@pytest.mark.parametrize("settings", [{"keep_for": 0}, {"keep_last": 0}, {"keep_for": 1}])
def test_retention_keeps_what_is_needed_and_removes_it_afterwards(open_queue, clock, settings):
    queue = open_queue(**settings)
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    finish(queue, a, {"x": 1})
    clock.advance(60)
    queue.tend()
    item = queue.claim()
    assert item.id == b
    assert item.after[0].result == {"x": 1}
    queue.mark_done(item)
    for _ in range(3):
        clock.advance(60)
        queue.tend()
    assert queue.get(a) is None


def test_failed_items_are_kept_while_others_could_be_revived_by_them(open_queue, clock):
    queue = open_queue(keep_failed_for=1)
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a], if_failed="run", delay=3600)
    fail(queue, a)
    clock.advance(60)
    queue.tend()
    assert queue.get(a)
    clock.advance(3600)
    finish(queue, b)
    clock.advance(60)
    queue.tend()
    assert queue.get(a) is None


def test_results_are_kept_where_content_is_not(open_queue):
    queue = open_queue(keep_content=False)
    a = queue.enqueue("a")
    queue.enqueue("b", after=[a])
    finish(queue, a, [1, 2])
    assert queue.claim().after[0].result == [1, 2]


@pytest.mark.parametrize("remove", [lambda queue: queue.prune(0), lambda queue: queue.purge("done")])
def test_prune_and_purge_spare_what_is_needed(queue, clock, remove):
    a, other = queue.enqueue_many(["a", "other"])
    b = queue.enqueue("b", after=[a])
    queue.mark_done_many(queue.claim_many(2))
    clock.advance(1)
    assert remove(queue) == 1
    assert queue.get(a)
    assert queue.get(other) is None
    finish(queue, b)
    clock.advance(1)
    assert remove(queue) == 2
