"""A late worker: a stale receipt changes nothing, whichever verb presents it."""

import pytest

VERBS = {
    "mark_done": lambda queue, item: queue.mark_done(item, result="late"),
    "mark_done_many": lambda queue, item: queue.mark_done_many([item]) > 0,
    "mark_failed": lambda queue, item: queue.mark_failed(item, "late"),
    "mark_failed, for good": lambda queue, item: queue.mark_failed(item, "late", give_up=True),
    "extend": lambda queue, item: queue.extend(item, 600),
    "release": lambda queue, item: queue.release(item),
}


@pytest.fixture(params=VERBS)
def changes_nothing(request, path, sql):
    """Present a receipt through one of the verbs: it is refused, and no row of the file is different."""

    def changes_nothing(queue, item):
        before = sql(path, "SELECT * FROM ingest_queue")
        assert VERBS[request.param](queue, item) is False
        assert sql(path, "SELECT * FROM ingest_queue") == before

    return changes_nothing


def test_a_late_worker_cannot_finish_an_item_claimed_by_another(queue, clock, changes_nothing):
    queue.enqueue("x")
    late = queue.claim()
    clock.advance(60)
    successor = queue.claim()
    changes_nothing(queue, late)
    assert late.lost
    assert queue.mark_done(successor)


def test_a_late_worker_cannot_change_what_its_successor_finished(queue, clock, changes_nothing):
    queue.enqueue("x")
    late = queue.claim()
    clock.advance(60)
    queue.mark_done(queue.claim(), result="right")
    changes_nothing(queue, late)


def test_a_late_worker_cannot_touch_an_item_that_came_to_rest_without_it(queue, clock, changes_nothing):
    queue.enqueue("x", max_retries=1)
    late = queue.claim()
    clock.advance(60)
    assert queue.claim() is None
    changes_nothing(queue, late)
    assert queue.retry(late.id)
    changes_nothing(queue, late)


def test_a_holder_that_gave_the_item_back_cannot_touch_it_in_other_hands(queue, changes_nothing):
    queue.enqueue("x")
    late = queue.claim()
    queue.release(late)
    queue.claim()
    changes_nothing(queue, late)


def test_a_receipt_is_worth_nothing_when_membox_reset_the_row(queue, path, sql, changes_nothing):
    queue.enqueue("x")
    late = queue.claim()
    sql(path, "UPDATE ingest_queue SET status = 'pending', started_at = NULL WHERE status = 'processing'")
    changes_nothing(queue, late)
    sql(path, "UPDATE ingest_queue SET status = 'processing', started_at = datetime('now')")
    changes_nothing(queue, late)


def test_a_receipt_for_a_deleted_item_does_not_fit_its_neighbours(queue, changes_nothing):
    queue.enqueue_many(["a", "b", "c"])
    late = queue.claim_many(3)[1]
    for qid in (1, 2, 3):
        queue.delete(qid)
    queue.enqueue("new")
    queue.claim()
    changes_nothing(queue, late)


@pytest.mark.parametrize("verb", VERBS)
def test_a_receipt_works_after_its_lease_ran_out_until_somebody_takes_the_item(queue, clock, verb):
    queue.enqueue("x")
    item = queue.claim()
    clock.advance(10**6)
    assert not item.lost
    assert VERBS[verb](queue, item) is True
