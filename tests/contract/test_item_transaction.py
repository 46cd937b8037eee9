"""`with item.transaction(connection):`: the claim ends in the transaction of the caller's own writes."""

from contextlib import closing

import pytest
from membox_queue import GiveUp, Retry, RetryLater, StaleClaimError


@pytest.fixture
def own(engine, queue):
    with closing(engine.connect()) as connection:
        yield connection


@pytest.fixture
def effect(engine, own):
    return lambda text: engine.write(own, text)


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def endings(queue, id=1):
    return [(attempt.ending, attempt.error) for attempt in queue.history(id)]


def test_leaving_the_block_commits_and_the_item_is_done(engine, queue, own, effect, item):
    with item.transaction(own) as inside:
        assert inside is item
        effect("one")
    assert (engine.written(), queue.get(1).status, own.in_transaction) == (["one"], "done", False)
    assert not item.lost
    assert not queue.mark_done(item)


def test_what_the_block_says_about_the_item_stands(engine, queue, own, effect, item):
    with item.transaction(own):
        effect("one")
        queue.mark_done(item, {"n": 1}, connection=own)
    assert (queue.get(1).status, queue.get(1).result) == ("done", {"n": 1})


def test_a_block_may_fail_or_release_its_item_and_keep_its_writes(engine, open_queue, queue, own, effect, item):
    with item.transaction(own):
        effect("why")
        queue.mark_failed(item, "no", connection=own)
    assert (engine.written(), queue.get(1).status) == (["why"], "failed")
    queue.retry(1)
    item = queue.claim()
    with item.transaction(own):
        queue.release(item, connection=own)
    assert queue.get(1).status == "pending"


def test_a_stale_receipt_raises_before_the_first_statement(engine, queue, own, effect, item):
    queue.release(item)
    queue.claim()
    with pytest.raises(StaleClaimError), item.transaction(own):
        pytest.fail("the block was entered")
    assert (engine.written(), own.in_transaction) == ([], False)


def test_a_claim_that_another_worker_took_raises_before_the_first_statement(open_queue, engine, own, effect, clock):
    queue = open_queue("leased", lease=10)
    queue.enqueue("x")
    item = queue.claim()
    clock.advance(60)
    assert queue.claim(worker="other").attempt == 2
    own.execute("BEGIN")
    effect("before")
    with pytest.raises(StaleClaimError, match="other has the item now"), item.transaction(own):
        pytest.fail("the block was entered")
    own.commit()
    assert engine.written() == ["before"]


def test_a_cancelled_item_raises_before_the_first_statement(engine, queue, own, effect, item):
    queue.cancel(1)
    with pytest.raises(StaleClaimError, match="cancelled"), item.transaction(own):
        pytest.fail("the block was entered")
    assert engine.written() == []


def test_what_the_block_raises_undoes_it_and_fails_the_item_once(engine, queue, own, effect, item):
    refused = pytest.raises(ValueError, match="boom")
    with refused, item.transaction(own):
        effect("undone")
        queue.mark_done(item, connection=own)
        raise ValueError("boom")
    assert (engine.written(), own.in_transaction) == ([], False)
    assert endings(queue) == [("failed", "ValueError: boom")]


@pytest.mark.parametrize(
    ("raised", "status", "ending"),
    [
        (RetryLater(30), "pending", "postponed"),
        (RetryLater(30, count=False), "pending", "released"),
        (GiveUp("enough"), "failed", "failed"),
        (KeyboardInterrupt(), "pending", "released"),
        (SystemExit(1), "pending", "postponed"),
    ],
)
@pytest.mark.parametrize("is_inside", [False, True])
def test_the_one_table_says_what_it_means(queue, own, item, raised, status, ending, is_inside):
    if is_inside:
        own.execute("BEGIN")
    with pytest.raises(type(raised)), item.transaction(own):
        raise raised
    own.commit()
    assert (queue.get(1).status, queue.history(1)[0].ending) == (status, ending)


def test_a_statement_that_fails_fails_the_item(queue, own, item):
    with pytest.raises(Exception, match="nowhere"), item.transaction(own):
        own.execute("nowhere")
    assert (queue.get(1).status, len(queue.history(1))) == ("failed", 1)


def test_inside_the_callers_own_transaction_the_caller_commits(engine, queue, own, effect, item):
    effect("before")
    with item.transaction(own):
        effect("inside")
    assert own.in_transaction
    assert queue.get(1).status == "processing"
    own.commit()
    assert (engine.written(), queue.get(1).status) == (["before", "inside"], "done")


def test_inside_the_callers_own_transaction_only_the_block_is_undone(engine, queue, own, effect, item):
    effect("before")
    refused = pytest.raises(ValueError, match="boom")
    with refused, item.transaction(own):
        effect("undone")
        raise ValueError("boom")
    effect("after")
    own.commit()
    assert engine.written() == ["before", "after"]
    assert endings(queue) == [("failed", "ValueError: boom")]


def test_a_caller_who_rolls_back_everything_has_its_item_failed_by_the_loop(engine, queue, own, effect):
    def handler(item):
        with own, item.transaction(own):
            effect("undone")
            raise ValueError("boom")

    queue.enqueue("x")
    report = queue.drain(handler)
    assert (report.failed, report.lost, engine.written()) == (1, 0, [])
    assert endings(queue) == [("failed", "ValueError: boom")]


def test_a_block_that_ends_its_transaction_itself_fails(engine, queue, own, effect, item):
    refused = pytest.raises(ValueError, match="ended its transaction itself")
    with refused, item.transaction(own):
        effect("one")
        own.rollback()
    assert (engine.written(), queue.get(1).status) == ([], "failed")


def test_a_block_that_ends_its_item_and_commits_stands(engine, queue, own, effect, item):
    with item.transaction(own):
        effect("one")
        queue.mark_done(item, 5, connection=own)
        own.commit()
    assert (engine.written(), queue.get(1).result) == (["one"], 5)


def test_blocks_can_be_repeated_and_nested(engine, queue, own, effect, item):
    refused = pytest.raises(ValueError, match="first")
    with refused, item.transaction(own):
        effect("undone")
        with item.transaction(own):
            raise ValueError("first")
    assert endings(queue) == [("failed", "ValueError: first")]
    queue.retry(1)
    item = queue.claim()
    with item.transaction(own), item.transaction(own):
        effect("one")
    assert (engine.written(), queue.get(1).status) == (["one"], "done")


@pytest.mark.parametrize("concurrency", [1, 2])
def test_in_a_loop_the_report_and_the_events_say_done(engine, queue, concurrency):
    events = []

    def handler(item):
        with closing(engine.connect()) as own, item.transaction(own):
            engine.write(own, item.content)

    queue.enqueue_many(["a", "b", "c"])
    report = queue.drain(handler, concurrency=concurrency, progress=lambda event: events.append(event.kind))
    assert (report.done, report.lost, sorted(engine.written())) == (3, 0, ["a", "b", "c"])
    assert sorted(events) == ["claimed"] * 3 + ["done"] * 3


def test_in_a_loop_what_the_block_raises_is_counted_once(open_queue, engine):
    queue = open_queue("retried", retry=Retry(max=2, base=0, jitter=0))

    def handler(item):
        with closing(engine.connect()) as own, item.transaction(own):
            engine.write(own, item.content)
            raise ValueError("boom")

    queue.enqueue("x")
    report = queue.drain(handler)
    assert (report.postponed, report.failed, engine.written()) == (1, 1, [])
    assert [attempt.ending for attempt in queue.history(1)] == ["postponed", "failed"]


def test_an_exception_after_the_block_leaves_the_end_as_it_is(engine, queue, own, effect, caplog):
    told = []

    def handler(item):
        with item.transaction(own):
            effect("one")
        raise ValueError("late")

    queue.enqueue("x")
    report = queue.drain(handler, on_error=lambda error, item, phase: told.append((str(error), phase)))
    assert (report.done, report.failed, engine.written()) == (1, 0, ["one"])
    assert told == [("late", "handler")]
    assert queue.get(1).status == "done"
    with caplog.at_level("INFO"):
        queue.enqueue("y")
        queue.drain(handler)
    assert "raised after its end" in caplog.text


def test_for_item_in_queue_goes_on_after_the_block(engine, queue, own, effect):
    queue.enqueue_many(["a", "b"])
    for item in queue:
        with item.transaction(own):
            effect(item.content)
        if item.content == "b":
            break
    assert (engine.written(), queue.counts()["done"]) == (["a", "b"], 2)
