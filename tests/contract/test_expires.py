"""expires: an item that has not ended by its deadline is cancelled, whatever it does."""

import time
from datetime import timedelta

import pytest
from in_asyncio import becomes, in_loop
from membox_queue import NewItem, Retry, RetryLater, StaleClaimError
from membox_queue.aio import tasks


@pytest.mark.parametrize("state", ["pending", "delayed", "blocked"])
def test_what_has_not_begun_is_cancelled_by_the_next_claim(queue, clock, state):
    after = [queue.enqueue("gate", priority=-1)] if state == "blocked" else []
    id = queue.enqueue("a", expires=10, delay=100 if state == "delayed" else None, after=after)
    assert (queue.get(id).expires_at - clock.now) == timedelta(seconds=10)
    clock.advance(10)
    item = queue.claim()
    assert item is None or item.id != id
    item = queue.get(id)
    assert (item.status, item.error) == ("cancelled", "it expired")
    assert item.finished_at == clock.now


def test_a_claim_from_any_queue_finds_it(queue, open_queue, clock):
    id = open_queue("approvals").enqueue("approve?", expires=10)
    waiting = queue.enqueue("go on", after=[id])
    clock.advance(11)
    assert queue.claim() is None
    assert queue.get(waiting).error == f"it waits for item {id}, which was cancelled"


@pytest.mark.parametrize("has_looked", [False, True])
def test_a_running_one_is_told_and_its_end_is_refused(queue, clock, has_looked):
    queue.enqueue("a", expires=10)
    item = queue.claim()
    clock.advance(11)
    if has_looked:
        assert queue.claim() is None
        assert queue.get(item.id).status == "processing"
    assert item.cancelled
    with pytest.raises(StaleClaimError, match=f"item {item.id} expired while it was being worked on"):
        item.check()
    assert not queue.mark_done(item, 1)
    ended = queue.get(item.id)
    assert (ended.status, ended.result, ended.error) == ("cancelled", None, "it expired")
    assert [attempt.ending for attempt in queue.history(item.id)] == ["cancelled"]


def test_an_end_in_time_counts(queue, clock):
    queue.enqueue("a", expires=10)
    item = queue.claim()
    clock.advance(9.999)
    assert queue.mark_done(item)
    clock.advance(60)
    assert queue.claim() is None
    assert queue.get(item.id).status == "done"


def test_a_retry_does_not_outlive_it(open_queue, clock):
    queue = open_queue(retry=Retry(max=5, base=60, jitter=0))
    id = queue.enqueue("a", expires=10)
    queue.mark_failed(queue.claim(), "boom")
    assert queue.get(id).status == "pending"
    clock.advance(11)
    assert queue.claim() is None
    assert queue.get(id).status == "cancelled"


def test_a_person_brings_it_back_without_its_deadline(queue, clock):
    id = queue.enqueue("a", expires=10)
    clock.advance(11)
    assert queue.claim() is None
    assert queue.retry(id)
    assert queue.get(id).expires_at is None
    clock.advance(100)
    assert queue.claim().id == id


def test_a_deadline_that_has_not_passed_stays(queue, clock):
    id = queue.enqueue("a", expires=10)
    queue.cancel(id)
    queue.retry(id)
    assert queue.get(id).expires_at is not None
    clock.advance(11)
    assert queue.claim() is None


def test_no_claim_gets_one_of_many_that_have_expired(queue, clock):
    queue.enqueue_many([NewItem(n, expires=10) for n in range(2500)])
    young = queue.enqueue("young")
    clock.advance(11)
    assert queue.claim().id == young
    assert queue.counts() == {**queue.counts(), "cancelled": 2500, "pending": 0}


def test_a_sleeping_worker_wakes_for_it(queue, open_queue, background, clock, until):
    id = open_queue("approvals").enqueue("approve?", expires=10)
    last = queue.enqueue("clean up", after=[id], if_failed="run")
    claim = background(queue.claim, wait=30)
    clock.advance(11)
    assert claim.result(10).id == last


def test_a_wait_ends_without_any_worker(queue, background, clock):
    id = queue.enqueue("a", expires=10)
    wait = background(queue.wait, id, 30)
    clock.advance(11)
    assert wait.result(10).status == "cancelled"


def test_an_expired_item_of_a_paused_queue_is_cancelled(queue, clock):
    id = queue.enqueue("a", expires=10)
    queue.pause()
    clock.advance(11)
    assert queue.claim() is None
    assert queue.get(id).status == "cancelled"


def test_it_is_taken_over_by_a_replacement(queue, clock):
    id = queue.enqueue("a", key="k", expires=10)
    queue.enqueue("b", key="k", on_duplicate="replace")
    assert queue.get(id).expires_at is None


def test_the_loop_reports_an_expired_item_as_cancelled(queue, clock):
    queue.enqueue("a", expires=10)

    def handle(item):
        clock.advance(11)
        return "too late"

    report = queue.drain(handle)
    assert (report.done, report.failed) == (0, 0)
    assert queue.counts()["cancelled"] == 1


def test_postponing_does_not_outlive_it(queue, clock):
    id = queue.enqueue("a", expires=10)

    def handle(item):
        clock.advance(11)
        raise RetryLater(60, count=False)

    queue.drain(handle)
    assert queue.get(id).status == "cancelled"


@pytest.mark.parametrize("expires", [0, -1, "soon", float("nan"), 1e20])
def test_what_is_no_deadline_is_refused(queue, expires):
    with pytest.raises((TypeError, ValueError), match="expires"):
        queue.enqueue("a", expires=expires)
    assert sum(queue.counts().values()) == 0


@in_loop
async def test_in_asyncio_the_task_of_an_expired_item_is_cancelled(aqueue, clock, monkeypatch):
    import asyncio

    monkeypatch.setattr(tasks, "LOOK_EVERY", 0.01)
    id = await aqueue.enqueue("a", expires=10)
    begun = asyncio.Event()

    async def handle(item):
        begun.set()
        await asyncio.Event().wait()

    loop = asyncio.create_task(aqueue.drain(handle))
    await begun.wait()
    clock.advance(11)
    await becomes(loop.done)
    assert (await aqueue.get(id)).status == "cancelled"


def test_a_worker_sleeps_until_the_deadline_and_no_longer(queue, open_queue):
    took = []
    for _ in range(3):
        id = open_queue("approvals").enqueue("approve?", expires=0.1)
        last = queue.enqueue("clean up", after=[id], if_failed="run")
        began = time.monotonic()
        item = queue.claim(wait=20)
        took.append(time.monotonic() - began)
        assert item.id == last
        queue.mark_done(item)
    assert min(took) < 0.4, "sooner than the next look without a sign"
