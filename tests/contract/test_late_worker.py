"""A late worker: a stale receipt changes nothing, whichever verb presents it."""

import pytest
from membox_queue import StaleClaimError

VERBS = {
    "mark_done": lambda queue, item: queue.mark_done(item, result="late"),
    "mark_done_many": lambda queue, item: queue.mark_done_many([item]) > 0,
    "mark_failed": lambda queue, item: queue.mark_failed(item, "late"),
    "mark_failed, for good": lambda queue, item: queue.mark_failed(item, "late", give_up=True),
    "extend": lambda queue, item: queue.extend(item, 600),
    "release": lambda queue, item: queue.release(item),
}


@pytest.fixture(params=VERBS)
def changes_nothing(request, engine):
    """Present a receipt through one of the verbs: it is refused, and no row of the table is different."""

    def changes_nothing(queue, item):
        before = engine.rows()
        assert VERBS[request.param](queue, item) is False
        assert engine.rows() == before

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


def lose_to_another(queue, clock):
    clock.advance(60)
    queue.claim()


def lose_to_one_that_finished(queue, clock):
    clock.advance(60)
    queue.mark_done(queue.claim())


def lose_the_last_retry(queue, clock):
    for _ in range(3):
        clock.advance(60)
        queue.claim()


ENDS = {
    r"reclaimed.*; host-b has the item now \(attempt 2\)": lose_to_another,
    "reclaimed.*; the item is done now": lose_to_one_that_finished,
    "reclaimed.*; the item is failed now": lose_the_last_retry,
    "the item was removed": lambda queue, clock: queue.delete(1),
    "was cancelled": lambda queue, clock: queue.cancel(1),
}


@pytest.mark.parametrize("why", ENDS)
def test_a_late_worker_is_told_what_became_of_its_claim(queue, open_queue, clock, why):
    queue.enqueue("x")
    late = queue.claim()
    with open_queue(worker="host-b") as other:
        ENDS[why](other, clock)
        with pytest.raises(StaleClaimError, match=why):
            late.check()
        if "cancelled" not in why:
            with pytest.raises(StaleClaimError, match=why), late:
                pass


def test_a_loop_tells_what_became_of_a_claim_it_lost(queue, caplog):
    told = []

    def handler(item):
        queue.delete(item.id)

    queue.enqueue("x")
    assert queue.drain(handler, on_error=lambda error, item, phase: told.append((str(error), phase))).lost == 1
    assert told == [("the claim on item 1 has ended: the item was removed", "lost")]
    assert "item 1 was lost: the item was removed" in caplog.text


def test_who_ended_a_claim_is_told_how(queue):
    queue.enqueue("x")
    item = queue.claim()
    queue.release(item)
    with pytest.raises(StaleClaimError, match=r"ended here before \(released\)"), item:
        pass
