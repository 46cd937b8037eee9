"""`keep_for=0` and `keep_last=0`: a done item is removed in the transaction of its end."""

import asyncio

import pytest
from membox_queue import DrainReport, NewItem
from programs import PROGRAMS


@pytest.fixture(params=[{"keep_for": 0}, {"keep_last": 0}], ids=["keep_for", "keep_last"])
def queue(request, open_queue):
    with open_queue(**request.param) as queue:
        yield queue


def test_a_done_item_is_gone_when_the_call_returns(queue):
    qid = queue.enqueue("x")
    assert queue.mark_done(queue.claim(), {"result": 1})
    assert queue.get(qid) is None
    assert queue.counts() == dict.fromkeys(queue.counts(), 0)
    assert queue.history(qid) == []


def test_every_way_of_ending_removes_it(queue):
    queue.enqueue_many(range(4))
    assert queue.drain(lambda item: None, limit=1).done == 1
    with queue.claim():
        pass
    assert queue.mark_done_many(queue.claim_many(2)) == 2
    assert queue.items() == []


def test_a_second_end_is_stale(queue):
    queue.enqueue("x")
    item = queue.claim()
    assert queue.mark_done(item)
    assert not queue.mark_done(item)
    assert not item.lost, "the claim ended, it was not lost"


def test_failed_and_cancelled_items_stay(queue):
    queue.enqueue_many(["failed", "cancelled"])
    queue.mark_failed(queue.claim(), "no")
    queue.cancel(2)
    assert [item.status for item in queue.items()] == ["failed", "cancelled"]


def test_an_item_stays_while_its_key_is_reserved(queue, clock):
    queue.enqueue("x", key="k", key_ttl=60)
    queue.mark_done(queue.claim())
    assert queue.enqueue("y", key="k") == 1
    clock.advance(61)
    queue.tend()
    assert queue.items() == []


def test_a_group_goes_on(queue):
    queue.enqueue_many([NewItem(number, group="g") for number in range(3)])
    seen = []
    assert queue.drain(lambda item: seen.append(item.content)) == DrainReport(done=3)
    assert seen == [0, 1, 2]


def test_an_id_is_not_used_again(queue):
    queue.enqueue("x")
    queue.mark_done(queue.claim())
    assert queue.enqueue("y") == 2


def test_a_caller_that_waits_gets_the_end_with_its_result(queue):
    qid = queue.enqueue("x")
    awaited = queue._await_end()
    queue.drain(lambda item: "result")
    item = queue.wait(qid, timeout=30)
    assert (item.status, item.content, item.result) == ("done", "x", "result")
    del awaited
    queue.tend()
    assert queue.items() == []


def test_a_caller_in_another_process_that_waits_gets_the_end(queue, address, start):
    qid = queue.enqueue("x")
    waiting = start(PROGRAMS / "wait_for.py", address, str(qid))
    assert waiting.stdout.readline() == "waiting\n"
    queue.drain(lambda item: "result")
    assert waiting.communicate(timeout=30)[0] == "done 'result'\n"


def test_an_item_that_was_deleted_is_not_shown_as_done(queue):
    qid = queue.enqueue("x")
    awaited = queue._await_end()
    queue.delete(qid)
    assert queue.wait(qid, timeout=30) is None
    del awaited


def test_a_wait_for_an_item_that_is_gone_returns_none(queue):
    qid = queue.enqueue("x")
    queue.mark_done(queue.claim())
    assert queue.wait(qid, timeout=30) is None
    with pytest.raises(ValueError, match="no item 7"):
        queue.wait(7, timeout=30)


def test_asyncio(open_async_queue):
    async def main():
        async with open_async_queue(keep_for=0) as queue:
            qid = await queue.enqueue("x")
            waiting = asyncio.ensure_future(queue.wait(qid, timeout=30))
            await asyncio.sleep(0)
            await queue.drain(lambda item: None)
            item = await waiting
            assert item is None or (item.status, item.content) == ("done", "x")
            await queue.tend()
            assert await queue.wait(qid, timeout=30) is None

    asyncio.run(main())
