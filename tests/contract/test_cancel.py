"""cancel: pending items at once, running ones when their holder reports or their lease ends."""

import pytest
from membox_queue import DrainReport, NewItem, StaleClaimError


def test_a_pending_item_is_cancelled_at_once(queue):
    queue.enqueue("x", delay=60)
    assert queue.cancel(1)
    item = queue.get(1)
    assert (item.status, item.cancelled) == ("cancelled", True)
    assert item.finished_at is not None
    assert not queue.cancel(1)
    assert not queue.cancel(2)


def test_a_running_item_tells_its_holder_and_refuses_its_receipt(queue):
    queue.enqueue("x")
    item = queue.claim()
    assert not item.cancelled
    assert queue.cancel(1)
    assert item.cancelled
    with pytest.raises(StaleClaimError, match="cancelled"):
        item.check()
    assert queue.get(1).status == "processing"
    assert not queue.mark_done(item)
    assert queue.get(1).status == "cancelled"
    assert item.cancelled


def test_a_cancelled_item_whose_holder_is_silent_comes_to_rest_with_its_lease(queue, clock):
    queue.enqueue("x")
    queue.claim(lease=10)
    queue.cancel(1)
    clock.advance(11)
    assert queue.claim() is None
    assert queue.get(1).status == "cancelled"


def test_a_running_item_holds_its_group_until_it_comes_to_rest(queue):
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    item = queue.claim()
    queue.cancel(item.id)
    assert queue.claim() is None
    queue.mark_failed(item, "stopped")
    assert queue.claim().content == "two"


def test_a_cancelled_item_can_be_brought_back(queue):
    queue.enqueue("x")
    queue.cancel(1)
    assert queue.retry_failed() == 0
    assert queue.retry(1)
    with queue.claim() as item:
        assert not item.cancelled
    assert queue.get(1).status == "done"


@pytest.mark.parametrize("concurrency", [1, 2])
def test_in_a_drain_it_is_reported_as_cancelled_and_is_nobodys_error(queue, caplog, concurrency):
    caplog.set_level("INFO", "membox_queue")
    queue.enqueue_many(["returns", "raises"])
    told, seen = [], []

    def handler(item):
        assert queue.cancel(item.id)
        if item.id == 2:
            item.check()

    options = {"on_error": lambda *error: told.append(error[1:]), "progress": lambda event: seen.append(event.kind)}
    assert queue.drain(handler, concurrency=concurrency, **options) == DrainReport(cancelled=2)
    assert [item.status for item in queue.items()] == ["cancelled", "cancelled"]
    assert sorted(seen) == ["cancelled", "cancelled", "claimed", "claimed"]
    assert told == []
    records = [record for record in caplog.records if not record.event.startswith("worker_")]
    assert sorted(record.getMessage() for record in records) == ["item 1 was cancelled", "item 2 was cancelled"]
    assert {(record.levelname, record.event, record.exc_info) for record in records} == {("INFO", "cancelled", None)}


def test_another_exception_of_a_cancelled_items_handler_is_still_told(queue, caplog):
    queue.enqueue("x")
    told = []

    def handler(item):
        queue.cancel(item.id)
        raise ValueError("on the way out")

    assert queue.drain(handler, on_error=lambda error, *_: told.append(str(error))) == DrainReport(cancelled=1)
    assert told == ["on the way out"]


def test_a_stale_claim_error_about_another_item_is_a_failure(queue, caplog):
    queue.enqueue("x")

    def handler(item):
        raise StaleClaimError("of some other item")

    assert queue.drain(handler) == DrainReport(failed=1)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert queue.get(1).error == "StaleClaimError: of some other item"


def test_leaving_the_block_of_a_cancelled_item_says_that_it_was_cancelled(queue):
    queue.enqueue("x")
    with pytest.raises(StaleClaimError, match="cancelled"), queue.claim() as item:
        queue.cancel(item.id)
    assert queue.get(1).status == "cancelled"
