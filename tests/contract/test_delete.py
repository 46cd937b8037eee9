"""delete: an item is gone, whatever its status."""

import pytest


def test_an_item_in_any_state_can_be_removed(queue):
    queue.enqueue_many(["done", "failed", "processing", "pending"])
    queue.mark_done(queue.claim())
    queue.mark_failed(queue.claim(), "boom")
    queue.claim()
    assert [queue.delete(qid) for qid in (1, 2, 3, 4)] == [True] * 4
    assert queue.items() == []


def test_what_is_not_there_is_not_removed(queue, open_queue):
    qid = queue.enqueue("x")
    with open_queue("mail") as mail:
        assert mail.delete(qid) is False
    assert queue.delete(qid) is True
    assert queue.delete(qid) is False


def test_an_id_is_never_used_twice(queue):
    queue.enqueue_many(["a", "b"])
    queue.delete(2)
    assert queue.enqueue("c") == 3


@pytest.mark.parametrize("qid", ["1", 1.0, None, True])
def test_an_id_is_an_int(queue, qid):
    queue.enqueue("x")
    with pytest.raises(TypeError, match="id"):
        queue.delete(qid)
    assert queue.pending() == 1
