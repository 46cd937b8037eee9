"""Results: what a handler returns, or `mark_done` is given, is stored as typed content would be."""

import asyncio
import enum
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict
from uuid import UUID

import pytest
from in_asyncio import in_loop
from membox_queue import DrainReport, NewItem

NOW = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Part:
    at: datetime


@dataclass
class Answer:
    text: str
    parts: list[Part]
    anything: Any = None
    words: int = field(init=False)

    def __post_init__(self):
        self.words = len(self.text.split())


@dataclass
class LongAnswer(Answer):
    pages: int = 1


class Keys(TypedDict):
    words: int


ANSWER = Answer("two words", [Part(NOW)], anything=Part(NOW))
PLAIN = {"text": "two words", "parts": [{"at": NOW.isoformat()}], "anything": {"at": NOW.isoformat()}, "words": 2}
VALUES = [
    (ANSWER, PLAIN),
    ([ANSWER], [PLAIN]),
    ({"answer": (ANSWER,)}, {"answer": [PLAIN]}),
    (Colour.RED, "red"),
    ({Colour.RED: 1}, {"red": 1}),
    ({3, 1, 2}, [1, 2, 3]),
    (NOW, NOW.isoformat()),
    (date(2026, 11, 16), "2026-11-16"),
    (timedelta(minutes=2), 120.0),
    (Decimal("1.10"), "1.10"),
    (UUID(int=7), str(UUID(int=7))),
    (Path("a") / "b", str(Path("a") / "b")),
    (b"bytes", "Ynl0ZXM="),
]


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_what_typed_content_knows_is_stored(queue, value, stored):
    queue.enqueue("x")
    assert queue.drain(lambda item: value) == DrainReport(done=1)
    assert queue.get(1).result == stored


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_so_does_mark_done(queue, value, stored):
    queue.enqueue_many(["x", "y"])
    assert queue.mark_done(queue.claim(), value)
    with queue.claim() as item:
        assert queue.mark_done(item, result=value)
    assert [item.result for item in queue.items()] == [stored] * 2


def test_one_result_of_a_batch_that_cannot_be_stored_costs_no_other(queue, caplog):
    queue.enqueue_many([NewItem("x", group="a"), NewItem("y", group="a")])
    report = queue.drain(lambda items: [ANSWER, object()], batch="group")
    assert report == DrainReport(done=2, unstored=1)
    assert [item.result for item in queue.items()] == [PLAIN, None]
    assert [record.item_id for record in caplog.records if record.event == "result_not_stored"] == [2]


@in_loop
async def test_so_do_asyncio_and_batches(aqueue, queue):
    queue.enqueue_many([NewItem("x", group="a"), NewItem("y", group="a"), "z"])

    async def awaited(item):
        return ANSWER

    assert await aqueue.drain(awaited, limit=1) == DrainReport(done=1)
    assert await aqueue.drain(lambda items: [ANSWER] * len(items), batch="group") == DrainReport(done=2)
    assert [item.result for item in queue.items()] == [PLAIN] * 3
    queue.enqueue("last")
    assert await aqueue.mark_done(await aqueue.claim(), ANSWER)
    assert queue.get(4).result == PLAIN


@pytest.mark.parametrize("value", [threading.Lock(), {"deep": [{1: 2}]}, Part(at=object()), float("inf")])
def test_what_cannot_be_stored_is_counted_and_said(queue, caplog, value):
    queue.enqueue("x")
    assert queue.drain(lambda item: value) == DrainReport(done=1, unstored=1)
    assert queue.get(1).result is None
    assert caplog.text.count("the result of item 1 is not stored") == 1
    queue.enqueue("y")
    with pytest.raises((TypeError, ValueError), match="the result"):
        queue.mark_done(queue.claim(), value)


def test_a_result_that_contains_itself_is_not_stored(queue):
    queue.enqueue("x")
    loop = Answer("", [])
    loop.anything = loop
    assert queue.drain(lambda item: loop) == DrainReport(done=1, unstored=1)


def test_the_result_of_an_item_that_was_lost_is_not_counted(queue):
    queue.enqueue("x")

    def handler(item):
        queue.cancel(item.id)
        return object()

    assert queue.drain(handler) == DrainReport(cancelled=1)


RETURNS = {
    "an int": (int, "two", "a str, not an int"),
    "a dataclass": (Answer, {"text": "x"}, "a dict, not an Answer"),
    "a list": (list[int], [1, "two"], r"the result\[1\] is a str, not an int"),
    "a TypedDict": (Keys, {"words": "two"}, r"the result\['words'\] is a str, not an int"),
    "nothing": (None, 1, "an int, not None"),
}


@pytest.mark.parametrize("annotation", RETURNS)
def test_a_registered_handler_whose_result_does_not_fit_its_annotation_fails(queue, annotation):
    kind, value, says = RETURNS[annotation]

    def count(text: str):
        return value

    count.__annotations__["return"] = kind
    handler = queue.handler(count)
    handler.enqueue("x")
    assert queue.drain() == DrainReport(failed=1)
    assert re.search(says, queue.get(1).error)
    assert "the result of count does not fit" in queue.get(1).error


def test_so_does_a_coroutine_function(open_async_queue, queue):
    async def main():
        async with open_async_queue() as aqueue:

            @aqueue.handler
            async def count(text: str) -> int:
                return text

            await count.enqueue("x")
            assert await aqueue.drain() == DrainReport(failed=1)

    asyncio.run(main())
    assert queue.get(1).error == "TypeError: the result of count does not fit int: the result is a str, not an int"


def test_an_instance_of_a_subclass_fits(queue):
    @queue.handler
    def answer(text: str) -> Answer:
        return LongAnswer(text, [], pages=3)

    answer.enqueue("a b")
    assert queue.drain() == DrainReport(done=1)
    assert queue.get(1).result == {"text": "a b", "parts": [], "anything": None, "words": 2, "pages": 3}
