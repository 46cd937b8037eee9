"""item.sleep: a handler that goes on later, without a slot and without an attempt that counts."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest
from membox_queue import Next, StaleClaimError


def test_a_sleeping_handler_holds_no_slot_and_is_called_again_when_it_is_time(queue, clock):
    calls = []

    def handler(item):
        calls.append((item.content, item.attempt))
        if item.content == "sleeps":
            item.sleep("cool down", 3600)
            calls.append("awake")
        return "end"

    id, _ = queue.enqueue_many(["sleeps", "other"])
    report = queue.drain(handler)
    assert (report.postponed, report.done) == (1, 1)
    assert calls == [("sleeps", 1), ("other", 1)]
    item = queue.get(id)
    assert (item.status, item.retries, item.error) == ("pending", 0, None)
    assert item.run_at == clock.now + timedelta(hours=1)
    assert [(each.ending, each.error) for each in queue.history(id)] == [("postponed", None)]
    clock.advance(3599)
    assert queue.drain(handler).done == 0
    clock.advance(2)
    assert queue.drain(handler).done == 1
    assert calls[2:] == [("sleeps", 2), "awake"]


def test_it_sleeps_once_over_later_attempts(queue, clock):
    awake = []

    def handler(item):
        item.sleep("once", timedelta(seconds=60))
        awake.append(item.attempt)
        if len(awake) < 3:
            raise LookupError

    id = queue.enqueue("x")
    queue.drain(handler)
    clock.advance(61)
    for _ in range(3):
        queue.drain(handler, retry_failed=True)
    assert awake == [2, 3, 4]
    assert queue.get(id).status == "done"


def test_several_sleeps_follow_each_other(queue, clock):
    def handler(item):
        item.sleep("first", 10)
        item.sleep("second", 20)
        return item.attempt

    id = queue.enqueue("x")
    for seconds in (0, 11, 21):
        clock.advance(seconds)
        queue.drain(handler)
    assert queue.get(id).result == 3


def test_one_that_is_woken_early_sleeps_on(queue, clock):
    def handler(item):
        item.sleep("x", 60)
        return "awake"

    id = queue.enqueue("x")
    queue.drain(handler)
    until = queue.get(id).run_at
    clock.advance(10)
    queue.run_now(id)
    assert queue.drain(handler).postponed == 1
    assert queue.get(id).run_at == until


def test_a_claim_that_is_lost_does_not_sleep_twice(queue, clock):
    queue.enqueue("x")
    with queue.claim() as item:
        item.sleep("x", 60)
    clock.advance(61)
    queue.claim(lease=1)
    clock.advance(2)
    with queue.claim() as item:
        item.sleep("x", 60)
        queue.mark_done(item, "awake")
    assert queue.get(item.id).result == "awake"


def test_no_time_at_all_is_no_sleep(queue):
    queue.enqueue("x")
    with queue.claim() as item:
        item.sleep("x", 0)
    assert queue.get(item.id).status == "done"


def test_an_exception_handler_does_not_catch_it(queue):
    def handler(item):
        try:
            item.sleep("x", 60)
        except Exception:
            return "caught"

    id = queue.enqueue("x")
    assert queue.drain(handler).postponed == 1
    assert queue.get(id).status == "pending"


def test_one_that_is_swallowed_fails_the_attempt_and_says_so(queue, open_queue):
    def handler(item):
        with suppress(BaseException):
            item.sleep("a nap", 60)
        item.enqueue("child")
        return Next(queue="other") if item.content == "next" else "result"

    ids = queue.enqueue_many(["x", "next"])
    assert queue.drain(handler).failed == 2
    for id in ids:
        assert 'went on after sleep "a nap"' in queue.get(id).error
    assert queue.counts()["pending"] == open_queue("other").pending() == 0


def test_a_call_after_a_swallowed_one_leaves_the_handler_again(queue):
    reached = []

    def handler(item):
        try:
            item.sleep("a", 60)
        except BaseException:
            reached.append("first")
        item.step("b", reached.append, "never")

    queue.enqueue("x")
    assert queue.drain(handler).postponed == 1
    assert reached == ["first"]


def test_a_block_ends_with_it(queue, clock):
    id = queue.enqueue("x")
    with queue.claim() as item:
        item.sleep("x", 60)
        pytest.fail("the block goes on")
    assert queue.get(id).status == "pending"
    clock.advance(61)
    with queue.claim() as item:
        item.sleep("x", 60)
    assert queue.get(id).status == "done"


def test_a_block_that_swallows_it_fails(queue):
    id = queue.enqueue("x")
    with pytest.raises(ValueError, match="went on after sleep"), queue.claim() as item, suppress(BaseException):
        item.sleep("x", 60)
    assert queue.get(id).status == "failed"


def test_a_bare_claim_cannot_sleep(queue):
    queue.enqueue("x")
    item = queue.claim()
    with pytest.raises(ValueError, match="bare claim"):
        item.sleep("x", 60)
    assert queue.mark_done(item)


def test_a_lost_claim_does_not_sleep(queue, clock):
    queue.enqueue("x")
    item = queue.claim(lease=1)

    def late():
        with item:
            clock.advance(100)
            assert queue.claim(wait=5) is not None
            item.sleep("x", 60)

    with pytest.raises(StaleClaimError):
        late()


@pytest.mark.parametrize("seconds", [-1, "1", float("nan"), 1e15])
def test_an_impossible_time_is_refused(queue, seconds):
    queue.enqueue("x")
    with queue.claim() as item, pytest.raises((TypeError, ValueError, OverflowError)):
        item.sleep("x", seconds)


def test_what_a_handler_enqueued_before_it_slept_is_not_written(queue, clock):
    def handler(item):
        item.enqueue("child")
        item.sleep("x", 60)

    queue.enqueue("x")
    queue.drain(handler)
    assert len(queue.items()) == 1
    clock.advance(61)
    queue.drain(handler, limit=1)
    assert [item.content for item in queue.items()] == ["x", "child"]


def test_loops_report_it_and_on_error_does_not_hear_of_it(queue):
    events, errors = [], []
    queue.enqueue("x")
    queue.drain(
        lambda item: item.sleep("x", 60),
        progress=lambda event: events.append(event.kind),
        on_error=lambda *told: errors.append(told),
    )
    assert (events, errors) == (["claimed", "postponed"], [])


def test_in_asyncio(open_async_queue, clock):
    awake = []

    async def handler(item):
        if item.content == "swallows":
            try:
                await item.sleep("x", 60)
            except BaseException:
                return "went on"
        try:
            await item.sleep("x", 60)
        except Exception:
            pytest.fail("caught")
        awake.append(item.attempt)

    async def main():
        async with open_async_queue() as queue:
            id, swallows = await queue.enqueue_many(["x", "swallows"])
            report = await queue.drain(handler)
            assert (report.postponed, report.failed) == (1, 1)
            assert "went on after sleep" in (await queue.get(swallows)).error
            clock.advance(61)
            assert (await queue.drain(handler)).done == 1
            await queue.enqueue("block")
            async with await queue.claim() as item:
                await item.sleep("x", 60)
            assert (await queue.get(item.id)).status == "pending"
            return await queue.get(id)

    assert asyncio.run(main()).status == "done"
    assert awake == [2]
