"""An end that a handler said on its own connection counts once it is committed, and fails the item if it is not."""

import time
from contextlib import closing

import pytest
from membox_queue import Queue, QueueBusyError, StaleClaimError

NOT_COMMITTED = "it was marked done in a transaction that was not committed"


@pytest.fixture
def own(engine, queue):
    with closing(engine.connect()) as connection:
        yield connection


@pytest.fixture
def told():
    return []


@pytest.fixture
def drain(queue, told):
    """Drain with a handler; what is reported goes to `told`."""

    def on_error(error, item, phase):
        told.append((phase, str(error)))

    return lambda handler, **plan: queue.drain(handler, on_error=on_error, **plan)


def test_ends_on_the_callers_connection_are_counted_as_what_they_are(engine, queue, own, drain, told):
    def handler(item):
        with own:
            engine.write(own, item.content)
            match item.content:
                case "done":
                    queue.mark_done(item, 1, connection=own)
                case "failed":
                    queue.mark_failed(item, "no", connection=own)
                case "later":
                    queue.mark_failed(item, "no", retry_in=60, connection=own)
                case "released":
                    queue.release(item, 60, connection=own)

    queue.enqueue_many(["done", "failed", "later", "released"])
    report = drain(handler)
    counts = report.done, report.failed, report.postponed, report.released, report.lost
    assert (counts, told, len(engine.written())) == ((1, 1, 1, 1, 0), [], 4)
    assert [item.status for item in queue.items()] == ["done", "failed", "pending", "pending"]


@pytest.mark.parametrize("verb", ["mark_done", "mark_failed", "release"])
def test_an_end_that_was_rolled_back_fails_the_item(engine, queue, own, drain, told, verb):
    def handler(item):
        engine.write(own, "undone")
        getattr(queue, verb)(item, *(["no"] if verb == "mark_failed" else []), connection=own)
        own.rollback()

    queue.enqueue("x")
    report = drain(handler)
    said = {"mark_done": "marked done", "mark_failed": "marked failed", "release": "released"}[verb]
    assert (report.done, report.failed, engine.written()) == (0, 1, [])
    assert queue.get(1).error == f"it was {said} in a transaction that was not committed"
    [(phase, text)] = told
    assert phase == "finish"
    assert "not committed" in text


def test_a_handler_that_rolls_back_and_raises_fails_with_what_it_raised(queue, own, drain):
    def handler(item):
        queue.mark_done(item, connection=own)
        own.rollback()
        raise ValueError("boom")

    queue.enqueue("x")
    assert drain(handler).failed == 1
    assert queue.get(1).error == "ValueError: boom"


def test_a_transaction_that_is_still_open_is_reported_at_once(engine, queue, own, told):
    began = time.monotonic()

    def on_error(error, item, phase):
        told.append((phase, time.monotonic() - began))
        own.rollback()

    def handler(item):
        engine.write(own, "undone")
        queue.mark_done(item, connection=own)

    queue.enqueue("x")
    report = queue.drain(handler, on_error=on_error)
    [(phase, seconds)] = told
    assert phase == "finish"
    assert seconds < 10, "the patience of a writer is 30 s"
    assert (report.done, report.failed, engine.written()) == (0, 1, [])
    assert queue.get(1).error == NOT_COMMITTED


def test_a_transaction_that_is_committed_after_all_ends_the_item(engine, queue, own):
    def handler(item):
        engine.write(own, "one")
        queue.mark_done(item, 7, connection=own)

    queue.enqueue("x")
    report = queue.drain(handler, on_error=lambda error, item, phase: own.commit())
    assert (report.done, report.failed, report.lost) == (1, 0, 0)
    assert (engine.written(), queue.get(1).result) == (["one"], 7)


def test_a_transaction_longer_than_the_lease_ends_the_item_once(open_queue, engine, clock):
    queue = open_queue("leased", lease=10)
    attempts = []

    def handler(item):
        attempts.append(item.attempt)
        with closing(engine.connect()) as own, item.transaction(own):
            engine.write(own, "one")
            clock.advance(3600)

    queue.enqueue("x")
    report = queue.drain(handler, concurrency=2)
    assert (report.done, report.lost, attempts, engine.written()) == (1, 0, [1], ["one"])


def test_a_renewal_after_the_commit_does_not_make_the_claim_lost(open_queue, engine, until):
    queue, other = open_queue("leased", lease=0.3), open_queue("other", lease=0.3)
    lost = []

    def is_renewed():
        before = other.get(2).lease_until
        return until(lambda: other.get(2).lease_until != before)

    def handler(item):
        with closing(engine.connect()) as own:
            queue.mark_done(item, connection=own)
            own.commit()
        # One write renews both; for this item it finds nothing to renew.
        with other.claim():
            assert is_renewed()
            assert is_renewed()
        lost.append(item.lost)
        item.check()

    queue.enqueue("x")
    other.enqueue("y")
    report = queue.drain(handler)
    assert (report.done, report.lost, lost) == (1, 0, [False])


def test_a_claim_that_was_lost_after_a_rollback_is_lost(open_queue, engine, clock, address):
    queue = open_queue("leased", lease=10)

    def handler(item):
        with closing(engine.connect()) as own:
            queue.mark_done(item, connection=own)
            own.rollback()
        clock.advance(3600)
        with Queue(address, "leased") as other:
            assert other.claim().attempt == 2
        assert item.lost

    queue.enqueue("x")
    report = queue.drain(handler, limit=1)
    assert (report.done, report.lost) == (0, 1)


def test_with_item_looks_at_the_commit(queue, own):
    queue.enqueue_many(["a", "b", "c"])
    with queue.claim() as item:
        queue.mark_done(item, 5, connection=own)
        own.commit()
    assert queue.get(1).result == 5
    refused = pytest.raises(StaleClaimError, match=NOT_COMMITTED)
    with refused, queue.claim() as item:
        queue.mark_done(item, connection=own)
        own.rollback()
    assert (queue.get(2).status, queue.get(2).error) == ("failed", NOT_COMMITTED)
    began = time.monotonic()
    with pytest.raises(QueueBusyError, match="still open"), queue.claim() as item:
        queue.mark_done(item, connection=own)
    assert time.monotonic() - began < 10
    own.rollback()


def test_for_item_in_queue_fails_what_was_not_committed(queue, own):
    queue.enqueue_many(["a", "b"])
    for item in queue:
        queue.mark_done(item, connection=own)
        if item.content == "b":
            own.commit()
            break
        own.rollback()
    assert [item.status for item in queue.items()] == ["failed", "done"]
