"""Verbs with connection=…: the caller's writes and the verb's are there together, or neither is."""

import threading
from contextlib import closing

import pytest
from membox_queue import Retry, StaleClaimError


@pytest.fixture
def own(engine, queue):
    with closing(engine.connect()) as connection:
        yield connection


@pytest.fixture
def effect(engine, own):
    return lambda text: engine.write(own, text)


def claimed(queue, content="x", **options):
    queue.enqueue(content, **options)
    return queue.claim()


def lose(queue, item):
    """Let another worker have the item."""
    queue.release(item)
    return queue.claim()


def test_the_end_a_follow_up_and_the_callers_writes_are_there_after_the_commit(engine, queue, own, effect):
    item = claimed(queue)
    with own:
        effect("one")
        assert queue.mark_done(item, {"n": 1}, connection=own) is True
        queue.enqueue("next", connection=own)
    assert engine.written() == ["one"]
    assert (queue.get(item.id).status, queue.get(item.id).result) == ("done", {"n": 1})
    assert queue.claim().content == "next"


def test_none_of_it_is_there_after_a_rollback(engine, queue, own, effect):
    item = claimed(queue)
    effect("one")
    queue.mark_done(item, connection=own)
    queue.enqueue("next", connection=own)
    own.rollback()
    assert (engine.written(), queue.get(item.id).status, queue.pending()) == ([], "processing", 1)
    assert queue.mark_done(item), "the receipt is still valid"


def test_nothing_is_seen_before_the_commit(queue, own):
    item = claimed(queue, group="g")
    queue.mark_done(item, connection=own)
    assert queue.get(item.id).status == "processing"
    assert queue.counts()["processing"] == 1
    assert queue.group_counts() == {"g": {"pending": 0, "processing": 1}}
    own.commit()
    assert (queue.counts()["done"], queue.group_counts()) == (1, {})


@pytest.mark.parametrize("verb", ["mark_done", "mark_failed", "release"])
def test_a_lost_claim_raises_so_that_the_callers_writes_are_undone(engine, queue, own, effect, verb):
    item = claimed(queue)
    lose(queue, item)
    more = ["boom"] if verb == "mark_failed" else []
    refused = pytest.raises(StaleClaimError)
    with refused as raised, own:
        effect("twice")
        getattr(queue, verb)(item, *more, connection=own)
    assert (raised.value.id, raised.value.queue) == (item.id, "ingest")
    assert (engine.written(), queue.get(item.id).status) == ([], "processing")


def test_a_verb_that_raises_leaves_nothing_and_the_transaction_goes_on(engine, queue, own, effect):
    item = claimed(queue)
    lose(queue, item)
    with own:
        effect("kept")
        with pytest.raises(StaleClaimError):
            queue.mark_done(item, connection=own)
        queue.enqueue("after", connection=own)
    assert engine.written() == ["kept"]
    assert queue.counts()["pending"] == 1


def test_a_cancelled_item_raises_and_rests_as_cancelled_when_the_loop_reports(engine, queue, own, effect):
    def handler(item):
        queue.cancel(item.id)
        with own:
            effect("one")
            queue.mark_done(item, connection=own)

    queue.enqueue("x")
    report = queue.drain(handler)
    assert (report.cancelled, report.failed, engine.written()) == (1, 0, [])
    assert queue.get(1).status == "cancelled"


def test_the_end_of_a_cancelled_item_leaves_nothing_in_a_transaction_that_goes_on(engine, queue, own, effect):
    item = claimed(queue)
    queue.cancel(item.id)
    with own:
        effect("kept")
        with pytest.raises(StaleClaimError, match="the item was cancelled"):
            queue.mark_done(item, connection=own)
    assert (engine.written(), queue.get(1).status, queue.history(1)) == (["kept"], "processing", [])
    queue.mark_done(item)
    assert queue.get(1).status == "cancelled"


def test_an_end_is_said_once(queue, own):
    item = claimed(queue)
    queue.mark_done(item, connection=own)
    with pytest.raises(StaleClaimError, match=r"ended here before \(done\)"):
        queue.mark_failed(item, "late", connection=own)
    own.commit()
    assert queue.get(item.id).status == "done"
    with pytest.raises(StaleClaimError):
        queue.mark_done(item, connection=own)
    assert not queue.mark_done(item)
    assert not item.lost


def test_a_failure_counts_is_kept_in_the_history_and_follows_the_policy(open_queue, engine, clock):
    queue = open_queue("retried", retry=Retry(max=2, base=10, jitter=0))
    with closing(engine.connect()) as own:
        for status in ("pending", "failed"):
            item = claimed(queue) if status == "pending" else queue.claim()
            queue.mark_failed(item, ValueError("boom"), connection=own)
            own.commit()
            assert (queue.get(item.id).status, queue.get(item.id).error) == (status, "ValueError: boom")
            clock.advance(11)
    assert [attempt.ending for attempt in queue.history(item.id)] == ["postponed", "failed"]


def test_more_attempts_than_are_kept_are_trimmed(queue, own):
    queue.enqueue("x")
    for _ in range(22):
        queue.release(queue.claim(), connection=own)
        own.commit()
    assert [attempt.attempt for attempt in queue.history(1)] == list(range(3, 23))


def test_one_of_a_batch_that_is_not_done_releases_the_rest(queue, own):
    ids = [queue.enqueue(text, group="g") for text in "abc"]
    items = queue.claim_group()
    queue.mark_done(items[0], connection=own)
    queue.mark_failed(items[1], "no", connection=own)
    own.commit()
    assert [queue.get(id).status for id in ids] == ["done", "failed", "pending"]
    assert [attempt.ending for attempt in queue.history(ids[2])] == ["released"]
    assert queue.claim().id == ids[2]


def test_progress_that_is_not_stored_yet_is_stored_with_the_end(queue, own):
    item = claimed(queue)
    item.set_progress(0.1)
    item.set_progress(0.7, "nearly")
    queue.mark_failed(item, "boom", connection=own)
    own.commit()
    assert (queue.get(item.id).progress, queue.get(item.id).progress_note) == (0.7, "nearly")


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        ("release", "processing", "pending"),
        ("cancel", "pending", "cancelled"),
        ("retry", "failed", "pending"),
        ("delete", "pending", None),
        ("run_now", "pending", "pending"),
        ("run_later", "pending", "pending"),
    ],
)
def test_every_verb_is_committed_and_rolled_back_with_the_caller(queue, own, clock, verb, before, after, commits):
    queue.enqueue("x", delay=60, key="k") if verb == "run_now" else queue.enqueue("x", key="k")
    target = 1
    if before == "processing":
        target = queue.claim()
    elif before == "failed":
        queue.mark_failed(queue.claim(), "boom")
    earlier = queue.get(1)
    assert earlier.status == before
    more = [30] if verb == "run_later" else []
    assert getattr(queue, verb)(target, *more, connection=own) is True
    assert queue.get(1).status == before
    own.commit() if commits else own.rollback()
    item = queue.get(1)
    assert (item and item.status) == (after if commits else before)
    if verb in ("run_now", "run_later"):
        assert (item.run_at == earlier.run_at) is not commits


def test_items_are_found_by_their_key_and_what_is_not_there_is_false(queue, own):
    queue.enqueue("x", key="k")
    assert queue.run_later(key="k", delay=5, connection=own)
    assert queue.run_now(key="k", connection=own)
    assert not queue.run_now(key="k", connection=own)
    assert queue.cancel(key="k", connection=own)
    assert not queue.cancel(key="k", connection=own)
    assert queue.retry(key="k", connection=own)
    assert queue.delete(key="k", connection=own)
    for verb in (queue.cancel, queue.delete, queue.run_now, queue.retry):
        assert verb(key="k", connection=own) is False
        assert verb(99, connection=own) is False
    own.commit()
    assert queue.get(1) is None


def test_a_running_item_is_cancelled_by_the_commit(queue, own):
    item = claimed(queue)
    assert queue.cancel(item.id, connection=own)
    assert not item.cancelled
    own.commit()
    assert item.cancelled


def test_several_items_are_retried_by_ids_and_by_status(queue, own):
    queue.enqueue_many(["a", "b", "c"])
    for item in queue.claim_many(3):
        queue.mark_failed(item, "boom")
    assert queue.retry([1, 2, 99], connection=own) == 2
    assert queue.retry(status="failed", connection=own) == 1
    with pytest.raises(ValueError, match="not done ones"):
        queue.retry(status="done", connection=own)
    own.commit()
    assert queue.counts()["pending"] == 3


def test_claims_take_no_connection(queue, own):
    with pytest.raises(TypeError):
        queue.claim(connection=own)


def test_an_item_that_was_only_read_or_comes_from_another_queue_is_refused(open_queue, queue, own):
    other = claimed(open_queue("other"))
    for item in (queue.get(queue.enqueue("x")), other):
        with pytest.raises(ValueError, match=r"only read|another queue"):
            queue.mark_done(item, connection=own)
    with pytest.raises(ValueError, match="only read"):
        queue.get(2).transaction(own)


def test_a_waiting_consumer_wakes_after_the_commit_and_not_before(queue, own, background):
    queue.enqueue("first", connection=own)
    waiting = background(queue.claim, wait=60)
    with pytest.raises(TimeoutError):
        waiting.result(0.3)
    own.commit()
    assert waiting.result(10).content == "first"


def test_a_caller_that_waits_for_the_end_hears_of_the_commit(queue, own, background, until):
    item = claimed(queue)
    queue.mark_done(item, 7, connection=own)
    waiting = background(queue.wait, item.id, timeout=60)
    until(waiting.running)
    own.commit()
    assert waiting.result(10).result == 7


def test_a_rolled_back_enqueue_wakes_no_consumer(queue, own):
    def roll_back():
        queue.enqueue("never", connection=own)
        own.rollback()

    thread = threading.Thread(target=roll_back)
    thread.start()
    assert queue.claim(wait=0.5) is None
    thread.join()


def test_done_items_are_removed_or_lose_their_content_as_the_settings_say(open_queue, engine):
    kept_short, without = open_queue("short", keep_for=0), open_queue("without", keep_content=False)
    with closing(engine.connect()) as own:
        first, second = claimed(kept_short), claimed(without, "secret")
        kept_short.mark_done(first, connection=own)
        without.mark_done(second, 1, connection=own)
        own.commit()
    assert kept_short.get(first.id) is None
    assert (without.get(second.id).content, without.get(second.id).result) == (None, 1)
    assert not first.lost
