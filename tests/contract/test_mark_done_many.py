"""mark_done_many: many ends in one transaction."""

import pytest


def test_it_says_how_many_took_effect(queue):
    queue.enqueue_many(["a", "b", "c"])
    items = queue.claim_many(3)
    queue.delete(items[1].id)
    assert queue.mark_done_many(items) == 2
    assert queue.mark_done_many(items) == 0
    assert queue.counts()["done"] == 2


def test_an_item_given_twice_counts_once(queue):
    queue.enqueue("x")
    item = queue.claim()
    assert queue.mark_done_many([item, item]) == 1


def test_any_iterable_will_do(queue):
    queue.enqueue_many(["a", "b"])
    assert queue.mark_done_many(iter(queue.claim_many(2))) == 2
    assert queue.mark_done_many([]) == 0


def test_one_wrong_element_keeps_all_as_they_are(queue, open_queue):
    queue.enqueue_many(["a", "b"])
    item = queue.claim()
    with open_queue("mail") as mail:
        mail.enqueue("m")
        foreign = mail.claim()
    for wrong in (queue.get(item.id), foreign, 2, "2", None):
        with pytest.raises((TypeError, ValueError)):
            queue.mark_done_many([item, wrong])
    assert queue.counts()["done"] == 0
