"""for item in queue: renewed claims, one after another; whichever way the loop is left, nothing stays in hand."""

import contextlib
import threading

import pytest
from membox_queue import QueueClosedError


def test_each_item_is_done_when_its_block_ends(queue):
    queue.enqueue_many([1, 2, 3])
    total = 0
    for item in queue:
        with item:
            total += item.content
        if total == 6:
            break
    assert queue.counts()["done"] == 3


def leave(how, queue):
    for _ in queue:
        if how == "break":
            break
        if how == "return":
            return
        raise LookupError if how == "raise" else KeyboardInterrupt


@pytest.mark.parametrize("how", ["break", "return", "raise", "interrupt"])
def test_whoever_has_left_a_loop_finds_its_item_given_back(queue, how):
    queue.enqueue("x")
    with contextlib.suppress(LookupError, KeyboardInterrupt):
        leave(how, queue)
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)
    assert [attempt.ending for attempt in queue.history(1)] == ["released"]


def test_an_item_that_nothing_ended_is_given_back_when_the_next_is_asked_for(queue):
    queue.enqueue("x", priority=1)
    queue.enqueue("y")
    items = iter(queue)
    first = next(items)
    # Released, it comes first again.
    again = next(items)
    assert (first.id, again.id, again.attempt) == (1, 1, 2)
    assert queue.mark_done(again)
    assert next(items).id == 2
    items.close()
    assert queue.get(2).status == "pending"
    with pytest.raises(StopIteration):
        next(items)


def test_a_block_that_raises_fails_its_item_and_ends_the_loop(queue):
    def consume():
        for item in queue:
            with item:
                raise LookupError("nothing there")

    queue.enqueue("x")
    with pytest.raises(LookupError):
        consume()
    assert (queue.get(1).status, queue.get(1).error) == ("failed", "LookupError: nothing there")


def test_a_claim_is_renewed_before_its_block_begins(open_queue, until):
    queue = open_queue(lease=0.3)
    queue.enqueue("x")
    for item in queue:
        until(lambda granted=item.lease_until: queue.get(1).lease_until > granted)
        assert open_queue().claim() is None
        break


def test_it_waits_for_the_next_item(queue):
    threading.Timer(0.01, queue.enqueue, ["comes later"]).start()
    for item in queue:
        with item:
            assert item.content == "comes later"
        break
    assert queue.get(1).status == "done"


def test_a_queue_that_is_closed_ends_it(open_queue):
    queue = open_queue()
    queue.enqueue("x")
    items = iter(queue)
    next(items)
    queue.close()
    with pytest.raises(QueueClosedError):
        next(items)


def test_a_queue_has_no_contents_to_look_in(queue):
    with pytest.raises(TypeError):
        assert "x" in queue
