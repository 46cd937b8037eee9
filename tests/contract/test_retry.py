"""retry: failed or cancelled items come back with their retry count reset, one or several."""

import asyncio

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


@pytest.fixture
def ended(queue):
    """Two failed items, one cancelled, one done, one pending."""
    ids = queue.enqueue_many(["a", "b", "c", "d", "e"])
    queue.cancel(ids[2])
    for _ in range(2):
        queue.mark_failed(queue.claim(), "no", give_up=True)
    queue.mark_done(queue.claim())
    return ids


def statuses(queue):
    return [item.status for item in queue.items()]


def test_several_ids_come_back_and_are_counted(queue, ended):
    assert queue.retry([*ended, 99]) == 3
    assert statuses(queue) == ["pending", "pending", "pending", "done", "pending"]
    assert queue.retry(iter(ended)) == 0
    assert queue.retry([]) == 0


@pytest.mark.parametrize(("status", "count"), [("failed", 2), ("cancelled", 1)])
def test_all_of_a_status_come_back(queue, ended, status, count):
    result = queue.retry(status=status)
    assert (result, type(result)) == (count, int)
    assert queue.counts()[status] == 0


@pytest.mark.parametrize("which", [{"id": 1}, {"id": [1]}, {"key": "k"}, {"status": "failed"}])
def test_they_may_be_put_off(queue, clock, which):
    queue.enqueue("x", key="k")
    queue.mark_failed(queue.claim(), "no")
    assert queue.retry(**which, delay=30) == 1
    assert queue.claim() is None
    clock.advance(31)
    assert queue.claim().id == 1


def test_of_several_ids_with_one_key_the_latest_comes_back(queue):
    for _ in range(3):
        queue.enqueue("x", key="k")
        queue.mark_failed(queue.claim(), "no")
    assert queue.retry([1, 3, 2]) == 1
    assert queue.get(3).status == "pending"


def test_more_than_one_transaction_holds_come_back(queue):
    ids = queue.enqueue_many(["x"] * 2_500)
    for qid in ids:
        queue.cancel(qid)
    assert queue.retry(status="cancelled") == 2_500


@pytest.mark.parametrize("verb", ["retry", "replay"])
@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({}, TypeError, "takes an id, several ids, key=… or status=…"),
        ({"id": 1, "status": "failed"}, TypeError, "takes only one of"),
        ({"id": [1], "key": "k"}, TypeError, "takes "),
        ({"key": "k", "status": "failed"}, TypeError, "takes only one of"),
        ({"id": ["1"]}, TypeError, "id must be an int"),
        ({"id": "12"}, TypeError, "id must be an int"),
        ({"status": "pending"}, ValueError, "not pending ones"),
        ({"status": "lost"}, ValueError, "status must be one of"),
        ({"id": 1, "delay": -1}, ValueError, "delay"),
    ],
)
def test_wrong_arguments_change_nothing(queue, ended, verb, wrong, error, said):
    before = statuses(queue)
    with pytest.raises(error, match=said):
        getattr(queue, verb)(**wrong)
    assert statuses(queue) == before


def test_several_are_copied_in_the_order_given_and_counted(queue, ended, clock):
    assert queue.replay([ended[1], ended[0], 99]) == 2
    assert [item.content for item in queue.items(after=ended[-1])] == ["b", "a"]
    assert queue.replay(status="done", delay=60) == 1
    assert queue.items()[-1].run_at is not None
    assert queue.replay(status="cancelled") == 1
    copy = queue.replay(ended[0], delay=60)
    assert queue.get(copy).run_at is not None


def test_several_in_asyncio(queue, ended, open_async_queue):
    async def main():
        async with open_async_queue() as same:
            assert await same.retry([1, 2]) == 2
            assert await same.retry(status="cancelled") == 1
            assert await same.replay(status="done") == 1

    asyncio.run(main())
