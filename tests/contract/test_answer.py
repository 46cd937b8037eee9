"""answer: an end without a claim, by a person, a webhook or another program."""

import math

import pytest
from in_asyncio import in_loop
from membox_queue import NewItem, PayloadTooLargeError, StaleClaimError


def make(queue, state):
    """Enqueue an item and bring it into a state."""
    if state == "blocked":
        return queue.enqueue("a", after=[queue.enqueue("gate", priority=-1)])
    id = queue.enqueue("a", delay=60 if state == "delayed" else None)
    if state in ("running", "failed", "done"):
        item = queue.claim()
        if state == "failed":
            queue.mark_failed(item, "boom")
        elif state == "done":
            queue.mark_done(item, "own")
    elif state == "cancelled":
        queue.cancel(id)
    return id


@pytest.mark.parametrize("state", ["pending", "blocked", "delayed", "running", "failed"])
def test_what_has_not_succeeded_can_be_answered(queue, state):
    id = make(queue, state)
    assert queue.answer(id, {"yes": True})
    item = queue.get(id)
    assert (item.status, item.result, item.error) == ("done", {"yes": True}, None)
    assert item.finished_at is not None
    assert not queue.answer(id, {"yes": False}), "the first answer counts"
    assert queue.get(id).result == {"yes": True}


@pytest.mark.parametrize("state", ["pending", "blocked", "delayed", "running", "failed"])
def test_an_answer_may_be_an_error_that_no_retry_brings_back(queue, state):
    id = make(queue, state)
    assert queue.answer(id, error="refused by ann")
    item = queue.get(id)
    assert (item.status, item.result, item.error) == ("failed", None, "refused by ann")
    assert queue.retry_failed() == 0
    assert queue.answer(id, error=ValueError("still refused"))
    assert queue.get(id).error == "ValueError: still refused"
    assert queue.answer(id, 1)
    assert queue.get(id).status == "done"


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_what_is_done_or_cancelled_is_not_answered(queue, state):
    id = make(queue, state)
    before = queue.get(id).as_dict()
    assert not queue.answer(id, 1)
    assert not queue.answer(id, error="no")
    assert queue.get(id).as_dict() == before


def test_an_item_that_was_cancelled_while_it_runs_is_not_answered(queue):
    id = make(queue, "running")
    queue.cancel(id)
    assert not queue.answer(id, 1)


def test_a_missing_item_is_not_answered(queue, open_queue):
    assert not queue.answer(17, 1)
    assert not queue.answer(key="nobody has it", result=1)
    id = open_queue("other").enqueue("a")
    assert not queue.answer(id, 1), "it is in another queue"


def test_the_worker_of_an_answered_item_learns_of_it(queue):
    queue.enqueue("a")
    item = queue.claim()
    assert queue.answer(item.id, "theirs")
    assert item.lost
    with pytest.raises(StaleClaimError, match="the item was answered without it"):
        item.check()
    assert not queue.mark_done(item, "mine")
    assert queue.get(item.id).result == "theirs"


def test_the_report_of_a_loop_says_that_an_answered_item_was_lost(queue):
    queue.enqueue("a")
    report = queue.drain(lambda item: queue.answer(item.id, "theirs"))
    assert (report.done, report.lost) == (0, 1)


def test_an_answer_frees_who_waits_for_it_and_the_next_of_its_group(queue):
    a, b = queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g")])
    waiting = queue.enqueue("c", after=[a])
    assert queue.claim().id == a
    queue.answer(a)
    assert [queue.claim().id, queue.claim().id] == [b, waiting]


def test_a_wait_ends_with_the_answer(queue, background):
    id = queue.enqueue("approve?", delay=3600)
    wait = background(queue.wait, id, 30)
    queue.answer(id, True)
    assert wait.result(10).result is True


def test_an_answer_by_key_ends_the_item_that_has_it(queue):
    id = queue.enqueue("paid?", key="paid:7")
    assert queue.answer(key="paid:7", result=30, key_ttl=60)
    assert queue.get(id).result == 30
    assert sum(queue.counts().values()) == 1


def test_an_answer_that_comes_first_is_kept_for_who_asks_later(queue, clock):
    assert not queue.answer(key="paid:7", result=30), "without key_ttl it is not kept"
    assert sum(queue.counts().values()) == 0
    assert queue.answer(key="paid:7", result=30, key_ttl=60)
    assert not queue.answer(key="paid:7", result=40, key_ttl=60), "the first counts"
    waiting = queue.enqueue("ship", after=[NewItem("paid?", key="paid:7")])
    assert queue.get(waiting).status == "pending"
    assert [item.result for item in queue.get(waiting).after] == [30]
    clock.advance(61)
    anew = queue.enqueue("ship", after=[NewItem("paid?", key="paid:7")])
    assert queue.get(anew).status == "blocked"
    assert queue.answer(key="paid:7", result=50, key_ttl=math.inf)
    assert queue.get(anew).after[0].result == 50


def test_an_error_can_be_kept_for_who_asks_later(queue):
    assert queue.answer(key="paid:7", error="declined", key_ttl=60)
    id = queue.enqueue("ship", after=[NewItem("paid?", key="paid:7")])
    assert queue.get(id).status == "cancelled"


def test_what_makes_no_sense_is_refused(queue):
    id = queue.enqueue("a")
    for arguments in ({"result": 1, "error": "x"}, {"key_ttl": 1}, {"key": "k"}):
        with pytest.raises(TypeError):
            queue.answer(id, **arguments)
    with pytest.raises(TypeError, match="an id or a key"):
        queue.answer()
    with pytest.raises(TypeError):
        queue.answer(id, object())
    with pytest.raises(TypeError, match="error must be str or an exception"):
        queue.answer(id, error=3)
    assert queue.get(id).status == "pending"


def test_an_answer_above_the_limit_is_refused(open_queue):
    queue = open_queue(max_bytes=100)
    id = queue.enqueue("a")
    with pytest.raises(PayloadTooLargeError):
        queue.answer(id, "x" * 200)
    assert queue.get(id).status == "pending"


def test_retention_treats_an_answer_as_any_end(open_queue):
    queue = open_queue(keep_for=0)
    id = queue.enqueue("a")
    assert queue.answer(id)
    assert queue.get(id) is None


@in_loop
async def test_in_asyncio_answers_are_awaited(aqueue):
    id = await aqueue.enqueue("a")
    assert await aqueue.answer(id, [1])
    assert (await aqueue.get(id)).result == [1]
