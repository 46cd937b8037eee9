"""retry_failed: failed items below their ceiling go back to pending."""

import pytest
from membox_queue import Retry


def fail(queue, times=1, **options):
    """Enqueue an item and let it fail so often, the last time for now."""
    qid = queue.enqueue("x", **options)
    for left in reversed(range(times)):
        queue.mark_failed(queue.claim(), "boom", retry_in=0 if left else None)
    return qid


def test_items_below_the_ceiling_come_back_and_the_others_stay(queue):
    once, twice, thrice = fail(queue), fail(queue, 2), fail(queue, 3)
    assert queue.retry_failed() == 2
    assert [queue.get(qid).status for qid in (once, twice, thrice)] == ["pending", "pending", "failed"]


def test_what_came_back_keeps_its_count_and_its_error(queue):
    qid = fail(queue)
    queue.retry_failed()
    item = queue.get(qid)
    assert (item.retries, item.error, item.started_at, item.finished_at) == (1, "boom", None, None)
    assert queue.claim().attempt == 2


def test_a_number_replaces_every_ceiling_for_this_call(queue):
    fail(queue), fail(queue, 3), fail(queue, max_retries=1)
    assert queue.retry_failed(0) == 0
    assert queue.retry_failed(max_retries=2) == 2
    assert queue.retry_failed(4) == 1


def test_an_items_own_ceiling_counts_and_so_does_the_policys(open_queue):
    with open_queue(retry=Retry(max=2, base=0, jitter=0)) as queue:
        fail(queue, 2), fail(queue, 1, max_retries=1)
        assert queue.retry_failed() == 0
        queue.configure(retry=None)
    with open_queue() as queue:
        assert queue.retry_failed() == 1


def test_given_up_items_stay(queue):
    queue.enqueue("x")
    queue.mark_failed(queue.claim(), "boom", give_up=True)
    assert queue.retry_failed(100) == 0


def test_other_queues_and_other_statuses_are_left_alone(open_queue):
    with open_queue() as queue, open_queue("mail") as mail:
        fail(mail)
        queue.enqueue_many(["a", "b"])
        queue.mark_done(queue.claim())
        assert queue.retry_failed() == 0
        assert mail.counts()["failed"] == 1


@pytest.mark.parametrize("ceiling", [-1, 1.5, "3", True])
def test_a_ceiling_is_a_count(queue, ceiling):
    with pytest.raises((TypeError, ValueError), match="max_retries"):
        queue.retry_failed(ceiling)
