"""retry: one failed or cancelled item comes back with a fresh allowance."""

import pytest


def test_a_failed_item_comes_back_in_its_old_place_with_nothing_counted(queue):
    qid = queue.enqueue("first")
    queue.enqueue("second")
    queue.mark_failed(queue.claim(), "boom", give_up=True)
    assert queue.retry(qid) is True
    item = queue.get(qid)
    assert (item.status, item.retries, item.finished_at) == ("pending", 0, None)
    assert (queue.claim().id, queue.get(qid).attempt) == (qid, 2)


def test_a_given_up_item_that_was_brought_back_may_fail_as_often_as_any(queue):
    qid = queue.enqueue("x")
    queue.mark_failed(queue.claim(), "boom", give_up=True)
    queue.retry(qid)
    queue.mark_failed(queue.claim(), "boom")
    assert queue.retry_failed() == 1


def test_a_cancelled_item_comes_back(queue):
    qid = queue.enqueue("x")
    assert queue.cancel(qid)
    assert queue.retry(qid) is True
    assert queue.claim().id == qid


def test_items_in_any_other_state_are_left_alone(queue):
    queue.enqueue_many(["done", "processing", "pending"])
    queue.mark_done(queue.claim())
    held = queue.claim()
    assert [queue.retry(qid) for qid in (1, 2, 3, 99)] == [False] * 4
    assert queue.mark_done(held)


def test_an_item_of_another_queue_is_not_found(queue, open_queue):
    queue.enqueue("x")
    queue.mark_failed(queue.claim(), "boom")
    with open_queue("mail") as mail:
        assert mail.retry(1) is False
    assert queue.get(1).status == "failed"


@pytest.mark.parametrize("qid", ["1", 1.0, None, True])
def test_an_id_is_an_int(queue, qid):
    with pytest.raises(TypeError, match="id"):
        queue.retry(qid)
