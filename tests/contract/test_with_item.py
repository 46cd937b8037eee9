"""with item: left normally it is done, left by an exception it is failed."""

import asyncio
from datetime import timedelta

import pytest
from membox_queue import GiveUp, RetryLater, StaleClaimError


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def test_leaving_normally_is_done(queue, item):
    with item as inside:
        assert inside is item
        assert queue.get(item.id).status == "processing"
    assert queue.get(item.id).status == "done"


def test_an_exception_is_a_failure_and_goes_on_its_way(queue, item):
    with pytest.raises(ZeroDivisionError), item:
        1 / 0  # noqa: B018
    after = queue.get(item.id)
    assert (after.status, after.retries, after.error) == ("failed", 1, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_a_stop_from_outside_gives_the_item_back_uncounted(queue, item, stop):
    with pytest.raises(stop), item:
        raise stop
    after = queue.get(item.id)
    assert (after.status, after.retries, after.error) == ("pending", 0, None)


def test_an_exit_of_the_program_counts_as_a_lost_claim_does(queue):
    queue.enqueue("x", max_retries=2)
    for status, retries in (("pending", 1), ("failed", 2)):
        with pytest.raises(SystemExit), queue.claim():
            raise SystemExit(7)
        after = queue.get(1)
        assert (after.status, after.retries, after.error) == (status, retries, "SystemExit: 7")


@pytest.mark.parametrize("kind", [BaseException, asyncio.CancelledError])
def test_what_is_no_exception_and_no_stop_is_a_failure(queue, item, kind):
    panic = type("PanicException", (kind,), {})
    with pytest.raises(panic), item:
        raise panic("index out of bounds")
    after = queue.get(item.id)
    assert (after.status, after.retries, after.error) == ("failed", 1, "PanicException: index out of bounds")


def test_a_block_in_a_task_that_is_cancelled_gives_the_item_back_uncounted(queue, item):
    async def work():
        with item:
            await asyncio.Event().wait()

    async def main():
        await asyncio.wait_for(work(), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert (queue.get(item.id).status, queue.get(item.id).retries) == ("pending", 0)


def test_retry_later_and_give_up_mean_the_same_as_in_a_handler(queue, item, clock):
    with pytest.raises(RetryLater), item:
        raise RetryLater(30)
    after = queue.get(item.id)
    assert (after.status, after.retries, after.run_at) == ("pending", 1, clock.now + timedelta(seconds=30))
    clock.advance(30)
    with pytest.raises(GiveUp), queue.claim():
        raise GiveUp("hopeless")
    assert (queue.get(item.id).status, queue.get(item.id).error) == ("failed", "hopeless")


@pytest.mark.parametrize("seconds", [-1, "soon"])
def test_a_retry_time_that_is_none_still_ends_the_claim(queue, item, seconds):
    with pytest.raises((RetryLater, TypeError, ValueError)), item:
        raise RetryLater(seconds)
    assert queue.get(item.id).status != "processing"


def test_a_block_that_recorded_the_end_itself_is_left_alone(queue, item):
    with item:
        queue.mark_done(item, result="mine")
    assert queue.get(item.id).result == "mine"


def test_a_block_that_gave_the_item_back_is_left_alone_also_when_it_raises(queue, item):
    def work():
        with item:
            queue.release(item)
            raise LookupError

    with pytest.raises(LookupError):
        work()
    assert (queue.get(item.id).status, queue.get(item.id).retries) == ("pending", 0)


def test_a_lost_claim_is_noticed_inside_and_on_leaving(queue, item, clock):
    def work():
        with item:
            item.check()
            clock.advance(61)
            assert queue.claim() is not None
            assert item.lost
            with pytest.raises(StaleClaimError):
                item.check()

    with pytest.raises(StaleClaimError, match="has ended"):
        work()
    assert (queue.get(item.id).status, queue.get(item.id).attempt) == ("processing", 2)


def test_an_exception_in_a_lost_claim_goes_on_its_way_and_changes_nothing(queue, item, clock):
    def work():
        with item:
            clock.advance(61)
            queue.claim()
            raise LookupError

    with pytest.raises(LookupError):
        work()
    assert (queue.get(item.id).status, queue.get(item.id).attempt) == ("processing", 2)


def test_a_deleted_item_is_lost(queue, item):
    with pytest.raises(StaleClaimError), item:
        queue.delete(item.id)
    assert item.lost


def test_the_claim_is_renewed_for_as_long_as_the_block_runs(open_queue, clock, until):
    with open_queue(lease=0.3) as queue:
        queue.enqueue("x")
        with queue.claim() as item:
            for _ in range(4):
                clock.advance(0.29)
                until(lambda: queue.get(item.id).lease_until == clock.now + timedelta(seconds=0.4))
                assert queue.claim() is None
            assert not item.lost
        assert (queue.get(item.id).status, queue.get(item.id).attempt) == ("done", 1)


def test_an_item_that_was_only_read_cannot_be_worked_on(queue, item):
    with pytest.raises(ValueError, match="only read"), queue.get(item.id):
        pass
    assert not queue.get(item.id).lost
    queue.get(item.id).check()


def test_an_exception_whose_attributes_raise_is_a_failure_and_goes_on_its_way(queue):
    def refuse(self, *_):
        raise LookupError

    attributes = dict.fromkeys(["__class__", "__cause__", "__traceback__", "__notes__"], property(refuse))
    hostile = type("Hostile", (Exception,), attributes | dict.fromkeys(["__str__", "__repr__", "add_note"], refuse))
    queue.enqueue("x")
    # pytest.raises would ask for its attributes.
    try:
        with queue.claim():
            raise hostile
    except BaseException as raised:
        left = type(raised)
    assert left is hostile
    assert (queue.get(1).status, queue.get(1).retries) == ("failed", 1)
