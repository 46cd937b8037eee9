"""key=: the verbs on one item find it by its id, or by its key."""

import asyncio
from datetime import UTC, datetime

import pytest
from membox_queue import DrainReport

VERBS = ["get", "wait", "cancel", "retry", "delete", "replay", "run_now", "run_later", "history"]


@pytest.fixture
def failed(queue):
    """Three items of one key: the first two are done, the newest has failed."""
    for _ in range(2):
        queue.enqueue("older", key="k")
        queue.mark_done(queue.claim())
    qid = queue.enqueue("newest", key="k")
    queue.mark_failed(queue.claim(), "no")
    return qid


def arguments(verb):
    return {"delay": 60} if verb == "run_later" else {}


def test_reading_finds_the_newest_item_of_the_key(queue, failed):
    assert queue.get(key="k").id == failed
    assert queue.wait(key="k", timeout=1).content == "newest"
    assert [attempt.ending for attempt in queue.history(key="k")] == ["failed"]


def test_the_newest_item_of_the_key_is_changed_and_no_other(queue, failed, clock):
    copy = queue.replay(key="k")
    assert (queue.get(copy).content, queue.get(copy).key) == ("newest", None)
    assert queue.delete(copy)
    assert queue.retry(key="k") is True
    assert queue.run_later(key="k", delay=60)
    assert queue.get(failed).run_at is not None
    assert queue.run_later(key="k", run_at=datetime(2100, 1, 1, tzinfo=UTC))
    assert queue.run_now(key="k")
    assert queue.get(failed).run_at is None
    assert queue.cancel(key="k")
    assert queue.get(failed).status == "cancelled"
    assert queue.delete(key="k")
    assert [item.id for item in queue.items()] == [1, 2]


def test_an_older_item_of_the_key_is_not_taken_in_place_of_the_newest(queue):
    queue.enqueue("failed", key="k")
    queue.mark_failed(queue.claim(), "no")
    queue.enqueue("done", key="k")
    queue.mark_done(queue.claim())
    assert queue.retry(key="k") is False
    assert queue.get(1).status == "failed"


@pytest.mark.parametrize("verb", VERBS)
def test_a_key_that_no_item_of_this_queue_has_changes_nothing(queue, open_queue, verb):
    with open_queue("mail") as mail:
        mail.enqueue("x", key="k", delay=5)
        if verb == "wait":
            with pytest.raises(ValueError, match="no item with the key \"k\" in the queue 'ingest'"):
                queue.wait(key="k")
        else:
            assert not getattr(queue, verb)(key="k", **arguments(verb))
        assert mail.counts()["pending"] == 1


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({}, TypeError, "takes an id"),
        ({"id": 1, "key": "k"}, TypeError, "takes "),
        ({"key": ""}, ValueError, "key must not be empty"),
        ({"key": 5}, TypeError, "key must be"),
        ({"id": "1"}, TypeError, "id must be an int"),
    ],
)
def test_exactly_one_of_id_and_key_is_given(queue, verb, wrong, error, said):
    queue.enqueue("x", key="k", delay=5)
    with pytest.raises(error, match=said):
        getattr(queue, verb)(**wrong, **arguments(verb))
    assert queue.counts()["pending"] == 1


def test_waiting_by_key_waits_for_the_item_that_has_it_at_the_start(queue, background):
    first = queue.enqueue("a", key="k")
    waiting = background(queue.work, lambda item: None, limit=1)
    assert queue.wait(key="k", timeout=30).id == first
    assert waiting.result(30) == DrainReport(done=1)
    queue.enqueue("b", key="k")
    with pytest.raises(TimeoutError, match="item 2"):
        queue.wait(key="k", timeout=0)


def test_the_same_in_asyncio(open_async_queue):
    async def main():
        async with open_async_queue() as queue:
            qid = await queue.enqueue("x", key="k")
            assert (await queue.get(key="k")).id == qid
            assert await queue.run_later(key="k", delay=60)
            assert await queue.run_now(key="k")
            assert await queue.cancel(key="k")
            assert (await queue.wait(key="k")).status == "cancelled"
            assert await queue.retry(key="k") is True
            assert await queue.history(key="k") == []
            assert await queue.replay(key="k") == qid + 1
            assert await queue.delete(key="k")
            with pytest.raises(ValueError, match="no item with the key"):
                await queue.wait(key="k")
            with pytest.raises(TypeError, match="wait takes an id or a key"):
                await queue.wait()

    asyncio.run(main())
