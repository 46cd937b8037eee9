"""item.enqueue: what a handler enqueues with the end of its own item, or not at all."""

import asyncio
from contextlib import suppress
from datetime import date

import pytest
from membox_queue import (
    DuplicateItemError,
    GiveUp,
    NewItem,
    Next,
    PayloadTooLargeError,
    Queue,
    RetryLater,
    StaleClaimError,
)


def contents(queue):
    return [item.content for item in queue.items()]


def test_what_a_handler_enqueues_is_written_with_its_end(queue, open_queue):
    other = open_queue("other")
    first = queue.enqueue("first")
    seen = []

    def handler(item):
        if item.content == "first":
            assert item.enqueue("beside", queue="other", priority=3) is None
            item.enqueue(NewItem("second", delay=0))
            seen.append((contents(queue), contents(other)))

    report = queue.drain(handler)
    assert report.done == 2
    assert seen == [(["first"], [])]
    assert contents(queue) == ["first", "second"]
    (beside,) = other.items()
    assert (beside.content, beside.priority, beside.parent, beside.home) == ("beside", 3, first, "other")


def raise_later():
    raise RetryLater(0, count=False)


def fail():
    raise LookupError("no")


def give_up():
    raise GiveUp("no")


@pytest.mark.parametrize("end", [fail, raise_later, give_up])
def test_an_attempt_that_does_not_end_well_enqueues_nothing(queue, end):
    def handler(item):
        item.enqueue("child")
        end()

    queue.enqueue("x")
    queue.drain(handler, limit=1)
    assert contents(queue) == ["x"]


def test_an_item_that_is_released_or_lost_enqueues_nothing(queue, clock):
    queue.enqueue("x")
    item = queue.claim()
    item.enqueue("child")
    queue.release(item)
    item = queue.claim(lease=1)
    item.enqueue("child")
    clock.advance(2)
    second = queue.claim()
    assert queue.mark_done(item) is False
    assert contents(queue) == ["x"]
    with pytest.raises(StaleClaimError):
        item.enqueue("child")
    second.enqueue("its own")
    assert queue.mark_done(second)
    assert contents(queue) == ["x", "its own"]


def test_an_attempt_that_failed_before_leaves_nothing_to_the_next(queue):
    queue.enqueue("x")
    tried = []

    def handler(item):
        if item.parent is None:
            item.enqueue(f"child of attempt {item.attempt}")
            tried.append(item.attempt)
            if item.attempt == 1:
                raise RetryLater(0)

    queue.drain(handler)
    assert tried == [1, 2]
    assert contents(queue) == ["x", "child of attempt 2"]


def test_a_bare_claim_and_a_block_write_it_too(queue):
    queue.enqueue_many(["bare", "block", "fails"])
    bare = queue.claim()
    bare.enqueue("of the bare claim")
    queue.mark_done(bare)
    with queue.claim() as item:
        item.enqueue("of the block")
    with suppress(LookupError), queue.claim() as item:
        item.enqueue("of the one that fails")
        raise LookupError
    assert contents(queue) == ["bare", "block", "fails", "of the bare claim", "of the block"]


def test_with_a_next_stage_it_is_written_too(queue, open_queue):
    queue.enqueue("x")
    item = queue.claim()
    item.enqueue("child", queue="other")
    queue.mark_done(item, Next(queue="later"))
    assert contents(open_queue("later")) == ["x"]
    assert contents(open_queue("other")) == ["child"]


@pytest.mark.parametrize(
    ("content", "options", "error"),
    [
        (object(), {}, TypeError),
        (float("nan"), {}, ValueError),
        ("long", {"queue": "small"}, PayloadTooLargeError),
        ("x", {"delay": 1, "run_at": 2}, (TypeError, ValueError)),
        ("x", {"delay": 1e12}, ValueError),
        ("x", {"nonsense": 1}, TypeError),
        ("x", {"queue": 5}, TypeError),
        (NewItem("x"), {"priority": 1}, TypeError),
    ],
)
def test_what_cannot_be_enqueued_raises_at_the_call(queue, open_queue, content, options, error):
    open_queue("small", max_bytes=3)
    queue.enqueue("x")
    with queue.claim() as item, pytest.raises(error):
        item.enqueue(content, **options)
    assert contents(queue) == ["x"]


def test_an_item_enqueues_its_successor_under_its_own_key(queue, clock):
    first = queue.enqueue(0, key="tick")

    def tick(item):
        item.enqueue(item.content + 1, key=item.key, delay=60)

    assert queue.drain(tick).done == 1
    assert queue.get(key="tick").content == 1
    assert queue.enqueue("again", key="tick") == first + 1
    assert queue.drain(tick).done == 0
    clock.advance(61)
    assert queue.drain(tick).done == 1
    assert contents(queue) == [0, 1, 2]


def test_a_key_in_use_is_what_the_options_say(queue):
    queue.enqueue("has it", key="k", delay=60)
    queue.enqueue("x")
    with queue.claim() as item:
        item.enqueue("child", key="k")
        item.enqueue("child", key="k", on_duplicate="skip")
        item.enqueue("in its place", key="k", on_duplicate="replace", delay=60)
    assert contents(queue) == ["in its place", "x"]


def test_a_key_that_must_be_new_fails_the_attempt_if_it_is_not(queue):
    queue.enqueue("has it", key="k", delay=60)

    def handler(item):
        item.enqueue("another")
        item.enqueue("child", key="k", on_duplicate="raise")

    failing = queue.enqueue("x")
    errors = []
    report = queue.drain(handler, on_error=lambda error, item, phase: errors.append((type(error), phase)))
    assert (report.done, report.failed) == (0, 1)
    assert errors == [(DuplicateItemError, "handler")]
    assert "k" in queue.get(failing).error
    blocked = queue.enqueue("y")
    with pytest.raises(DuplicateItemError), queue.claim() as item:
        handler(item)
    assert queue.get(blocked).status == "failed"
    bare = queue.enqueue("z")
    item = queue.claim()
    handler(item)
    with pytest.raises(DuplicateItemError):
        queue.mark_done(item)
    assert queue.get(bare).status == "processing"
    assert contents(queue) == ["has it", "x", "y", "z"]


def test_a_child_takes_over_priority_project_and_trace_and_nothing_else(queue):
    parent = {"traceparent": "00-a", "tracestate": "b", "other": 1}
    queue.enqueue(
        "x", priority=7, project="p", headers=parent, group="g", key="k", source_path="s", doc_date="d", max_retries=9
    )
    with queue.claim() as item:
        item.enqueue("plain")
        item.enqueue("own", priority=1, project="q", headers={"traceparent": "00-c"})
        item.enqueue("none", priority=0, headers={"h": 1})
        item.enqueue(NewItem("new", priority=2))
    plain, own, none, new = queue.items(status="pending")
    trace = {"traceparent": "00-a", "tracestate": "b"}
    assert (plain.priority, plain.project, plain.headers) == (7, "p", trace)
    for field in ("group", "key", "source_path", "doc_date", "max_retries"):
        assert getattr(plain, field) is None
    assert (own.priority, own.project, own.headers) == (1, "q", {"traceparent": "00-c"})
    assert (none.priority, none.headers) == (0, {"h": 1, **trace})
    assert (new.priority, new.project) == (2, "p")
    assert plain.parent == own.parent == none.parent == new.parent == item.id


def test_an_item_that_a_handler_enqueues_itself_is_no_child(queue):
    queue.enqueue("x", priority=3)
    with queue.claim():
        queue.enqueue("beside")
    beside = queue.items(status="pending")[0]
    assert (beside.parent, beside.priority) == (None, 0)


def test_content_is_converted_by_the_type_of_the_queue_it_goes_into(open_queue):
    dates, texts = open_queue("dates", type=date), open_queue("texts")
    dates.enqueue(date(2026, 6, 14))
    with dates.claim() as item:
        item.enqueue(date(2026, 6, 15))
        item.enqueue("a text", queue="texts")
        item.enqueue(NewItem(date(2026, 6, 16), queue=dates))
        with pytest.raises(TypeError):
            item.enqueue("no date")
        with pytest.raises(TypeError):
            item.enqueue(date(2026, 6, 15), queue="texts")
    assert contents(dates) == [date(2026, 6, 14), date(2026, 6, 15), date(2026, 6, 16)]
    assert contents(texts) == ["a text"]


def test_a_full_queue_takes_what_a_handler_enqueues(open_queue):
    full = open_queue("full", max_pending=1)
    full.enqueue("x")
    with full.claim() as item:
        item.enqueue("one")
        item.enqueue("two")
    assert full.pending() == 2


def test_an_item_that_was_only_read_enqueues_nothing(queue):
    id = queue.enqueue("x")
    with pytest.raises(ValueError, match="only read"):
        queue.get(id).enqueue("child")


def test_after_the_end_nothing_can_be_added(queue):
    queue.enqueue("x")
    item = queue.claim()
    queue.mark_done(item)
    with pytest.raises(StaleClaimError):
        item.enqueue("child")


def test_a_waiting_worker_wakes_for_it(queue, open_queue, background):
    other = open_queue("other")
    waiting = background(other.claim, wait=30)
    queue.enqueue("x")
    with queue.claim() as item:
        item.enqueue("child", queue="other")
    assert waiting.result(30).content == "child"


def test_in_asyncio_it_is_a_plain_call(open_async_queue):
    async def main():
        async with open_async_queue() as queue:
            await queue.enqueue("x")

            async def handler(item):
                if item.content == "x":
                    assert item.enqueue("child", priority=2) is None

            report = await queue.drain(handler)
            return report.done, [(item.content, item.priority) for item in await queue.items()]

    assert asyncio.run(main()) == (2, [("x", 0), ("child", 2)])


def test_a_queue_class_is_no_queue(queue):
    queue.enqueue("x")
    with queue.claim() as item, pytest.raises(TypeError):
        item.enqueue("child", queue=Queue)
