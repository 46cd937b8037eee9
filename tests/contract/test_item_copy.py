"""An item as data: as_dict, and the copy that pickling makes of it."""

import asyncio
import copy
import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime

import pytest
from membox_queue import AsyncItem, DrainReport, Item
from programs.describe_item import describe
from typed_documents import Page

LIVE = {"after", "lost", "cancelled", "stopping"}
"""What an item asks of the file, or of its loop."""


@pytest.fixture
def item(queue, clock):
    queue.enqueue({"a": [1, None]}, project="p", headers={"h": 1}, group="g", key="k", priority=3, max_retries=2)
    return queue.claim()


def attributes(item):
    return {name for name in dir(item) if not name.startswith("_") and not callable(getattr(item, name))}


def test_a_dict_has_every_attribute_but_those_that_ask_the_file(item):
    fields = item.as_dict()
    assert set(fields) == attributes(item) - LIVE
    assert fields == {name: getattr(item, name) for name in fields}
    assert fields["content"] == {"a": [1, None]}
    assert isinstance(fields["started_at"], datetime)
    assert json.loads(json.dumps(fields, default=str))["headers"] == {"h": 1}


@pytest.mark.parametrize("content", ["text", b"\x00bytes", [1, {"a": None}], None])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_copy_says_what_the_item_says(queue, content, protocol):
    queue.enqueue(content, run_at=datetime(2020, 1, 1, tzinfo=UTC))
    claimed = queue.claim()
    claimed.set_progress(0.25, "reading")
    queue.mark_done(claimed, {"n": 1})
    for item in (claimed, queue.get(1)):
        again = pickle.loads(pickle.dumps(item, protocol))
        assert type(again) is Item
        assert again.as_dict() == item.as_dict()
        assert repr(again) == repr(item)
        assert pickle.loads(pickle.dumps(again)).as_dict() == item.as_dict()


def test_a_copy_ends_nothing(queue, item):
    for twin in (pickle.loads(pickle.dumps(item)), copy.copy(item), copy.deepcopy(item)):
        assert (twin.lost, twin.cancelled, twin.stopping, twin.check()) == (False, False, False, None)
        for end in (queue.mark_done, queue.release, lambda item: queue.mark_failed(item, "no"), enter, progress):
            with pytest.raises(ValueError, match="item 1 is a copy, which holds no claim; pass the item that claim"):
                end(twin)
        del twin
    assert queue.get(1).status == "processing"
    assert queue.mark_done(item)


def enter(item):
    with item:
        pass


def progress(item):
    item.set_progress(0.5)


def test_the_copy_of_a_cancelled_item_says_so(queue):
    queue.enqueue("x")
    queue.cancel(1)
    assert pickle.loads(pickle.dumps(queue.get(1))).cancelled


def test_a_handler_can_hand_its_item_to_another_process(queue):
    queue.enqueue({"n": 7}, headers={"h": 1})
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        report = queue.drain(lambda item: list(pool.submit(describe, item).result(60)))
    assert report == DrainReport(done=1)
    assert queue.get(1).result == [1, {"n": 7}, 1, {"h": 1}, False, False, False]


def test_content_of_a_type_keeps_its_type(open_queue):
    with open_queue("pages", type=Page) as pages:
        pages.enqueue(Page(3))
        item = pages.claim()
        again = pickle.loads(pickle.dumps(item))
        assert (type(again.content), again.content) == (Page, item.content)


def test_an_item_of_asyncio_is_copied_as_a_plain_one(open_async_queue):
    async def main():
        async with open_async_queue() as queue:
            await queue.enqueue("x")
            item = await queue.claim()
            assert isinstance(item, AsyncItem)
            again = pickle.loads(pickle.dumps(item))
            assert type(again) is Item
            assert again.as_dict() == item.as_dict()
            with pytest.raises(ValueError, match="copy"):
                await queue.mark_done(again)
            assert await queue.mark_done(item)

    asyncio.run(main())
