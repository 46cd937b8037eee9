"""mark_done: the end everybody hopes for."""

import pytest
from membox_queue import PayloadTooLargeError


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def test_a_done_item_is_finished_and_nobodys(queue, item, clock):
    assert queue.mark_done(item) is True
    done = queue.get(item.id)
    assert (done.status, done.finished_at, done.result) == ("done", clock.now, None)
    assert (done.worker, done.lease_until) == (item.worker, None)
    assert done.started_at == item.started_at
    assert queue.claim() is None


@pytest.mark.parametrize("result", [{"triples": 12}, [1, 2.5, None], "text", 0, False, ""])
def test_the_result_is_kept(queue, item, result):
    queue.mark_done(item, result=result)
    assert queue.get(item.id).result == result
    assert type(queue.get(item.id).result) is type(result)


def test_the_result_may_be_given_by_position(queue, item):
    queue.mark_done(item, "ok")
    assert queue.get(item.id).result == "ok"


def test_being_done_clears_the_error_and_keeps_the_count(queue, item):
    queue.mark_failed(item, "boom", retry_in=0)
    queue.mark_done(queue.claim())
    done = queue.get(item.id)
    assert (done.error, done.retries, done.attempt) == (None, 1, 2)


@pytest.mark.parametrize("result", [float("nan"), {1: 2}, {"a": {"b": object()}}])
def test_a_result_that_json_cannot_carry_is_refused_and_the_claim_stays(queue, item, result):
    with pytest.raises((TypeError, ValueError), match="the result"):
        queue.mark_done(item, result=result)
    assert queue.get(item.id).status == "processing"
    assert queue.mark_done(item)


def test_a_result_beyond_the_limit_is_refused_and_the_claim_stays(open_queue):
    with open_queue(max_bytes=100) as queue:
        queue.enqueue("x")
        item = queue.claim()
        with pytest.raises(PayloadTooLargeError, match="100"):
            queue.mark_done(item, result="r" * 101)
        assert queue.mark_done(item, result="r" * 98)


def test_an_item_is_done_once(queue, item):
    assert queue.mark_done(item, "first")
    assert queue.mark_done(item, "second") is False
    assert queue.get(item.id).result == "first"
    assert not item.lost


def test_any_queue_object_of_the_same_file_and_name_may_record_it(queue, item, open_queue):
    with open_queue() as other:
        assert other.mark_done(item)
