"""@queue.handler: a typed function whose arguments are the content of its queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from membox_queue import AsyncItem, ContentError, DrainReport, Item, Retry

NOW = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)


@dataclass
class Doc:
    title: str
    at: datetime


@dataclass
class Result:
    words: int


@pytest.fixture
def send(queue):
    queue.sent = []

    @queue.handler
    def send(to: str, body: str = "hello", *, at: datetime | None = None) -> int:
        """Send it."""
        queue.sent.append((to, body, at))
        return len(queue.sent)

    return send


def test_its_arguments_are_enqueued_and_the_drain_calls_it_with_them(queue, send):
    ids = [send.enqueue("ann"), send.enqueue("ben", "bye", at=NOW), send.enqueue(body="hi", to="cid")]
    assert queue.drain() == DrainReport(done=3)
    assert queue.sent == [("ann", "hello", None), ("ben", "bye", NOW), ("cid", "hi", None)]
    assert [queue.get(qid).result for qid in ids] == [1, 2, 3]


def test_calling_it_runs_it_at_once(queue, send):
    assert send("ann", "hi") == 1
    assert queue.sent == [("ann", "hi", None)]
    assert queue.pending() == 0
    assert (send.__name__, send.__doc__) == ("send", "Send it.")


@pytest.mark.parametrize(
    ("arguments", "named", "error", "text"),
    [
        ((), {}, TypeError, "send: missing a required argument: 'to'"),
        (("a", "b", "c"), {}, TypeError, "send: too many positional arguments"),
        (("a",), {"cc": "d"}, TypeError, "send: got an unexpected keyword argument 'cc'"),
        ((1,), {}, TypeError, "content['to'] is an int, not a str"),
        (("a",), {"at": "now"}, TypeError, "content['at'] is a str, not a datetime | None"),
        (("\ud800",), {}, ValueError, "lone surrogate"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_nothing_is_written(queue, send, arguments, named, error, text):
    for enqueue in (send.enqueue, send.options(priority=1).enqueue):
        with pytest.raises(error) as raised:
            enqueue(*arguments, **named)
        assert text in str(raised.value)
    assert queue.pending() == 0


def test_content_that_is_not_its_arguments_is_an_ordinary_failure(queue, send):
    queue.enqueue_many(["text", {"body": "x"}, {"to": "a", "at": "never"}, {"to": "ok", "new": 1}])
    told = []
    report = queue.drain(on_error=lambda error, item, phase: told.append(type(error)))
    assert report == DrainReport(done=1, failed=3)
    assert told == [ContentError] * 3
    assert [item.error for item in queue.items("failed")] == [
        "ContentError: the content does not fit send: content is a str, not a dict of its arguments",
        "ContentError: the content does not fit send: content['to'] is missing",
        "ContentError: the content does not fit send: content['at'] is 'never', not a datetime",
    ]
    assert queue.get(1).content == "text"


def test_work_runs_it_too_and_another_handler_may_be_given(queue, send):
    send.enqueue("ann")
    assert queue.work(limit=1).done == 1
    assert queue.sent == [("ann", "hello", None)]
    send.enqueue("ben")
    assert queue.drain(lambda item: item.content["to"]).done == 1
    assert queue.get(2).result == "ben"
    send.enqueue("cid")
    assert queue.drain(send).done == 1
    assert queue.sent[-1] == ("cid", "hello", None)


def test_without_a_handler_there_is_nothing_to_run(queue, open_async_queue):
    with pytest.raises(TypeError, match=r"has no handler; give one, or register it with @queue\.handler"):
        queue.drain()
    with pytest.raises(TypeError, match="has no handler"):
        asyncio.run(open_async_queue().drain())


def test_a_queue_has_one_handler(queue, send):
    with pytest.raises(ValueError, match="the queue 'ingest' has a handler already: send"):

        @queue.handler
        def other(to: str) -> None: ...

    with pytest.raises(ValueError, match="has a handler already"):

        @queue.handler(name="ingest")
        def another(to: str) -> None: ...


def test_a_handler_in_a_typed_queue_takes_its_content(open_queue):
    with open_queue(type=Doc) as queue:
        with pytest.raises(TypeError, match="the queue holds Doc; wrong must take one argument of that type"):

            @queue.handler
            def wrong(doc: str) -> None: ...

        @queue.handler
        def embed(doc: Doc) -> Result:
            return Result(len(doc.title.split()))

        ids = [embed.enqueue(Doc("one two", NOW)), queue.enqueue(Doc("three", NOW))]
        with pytest.raises(TypeError, match="content is a str, not a Doc"):
            embed.enqueue("no")  # type: ignore[arg-type]
        assert queue.get(ids[0]).content == Doc("one two", NOW)
        assert queue.drain().done == 2
        assert [queue.get(qid).result for qid in ids] == [{"words": 2}, {"words": 1}]
        assert embed(Doc("a b c", NOW)) == Result(3)


def test_a_handler_of_a_typed_queue_has_typed_content_from_any_queue(open_queue):
    with open_queue(type=Doc) as queue, open_queue() as plain, open_queue(type=str) as other:

        @queue.handler
        def embed(doc: Doc = Doc("none", NOW)) -> str:  # noqa: B008 - a value, never changed
            return doc.title

        ids = [embed.enqueue(), embed.enqueue(Doc("one", NOW))]
        assert plain.drain(embed).done == 2
        assert [queue.get(qid).result for qid in ids] == ["none", "one"]
        with pytest.raises(TypeError, match="the queue 'ingest' holds str, and its handler takes Doc"):
            other.drain(embed)


def test_a_handler_may_ask_for_its_item(queue):
    @queue.handler
    def embed(item: Item[Any], doc: Doc) -> list[Any]:
        item.set_progress(1.0, doc.title)
        return [item.id, item.attempt]

    qid = embed.enqueue(Doc("t", NOW))
    queue.drain()
    found = queue.get(qid)
    assert (found.result, found.progress_note) == ([qid, 1], "t")
    assert found.content == {"doc": {"title": "t", "at": NOW.isoformat()}}
    with pytest.raises(TypeError, match=r"call embed\.function\(item, …\)"):
        embed(Doc("t", NOW))
    assert embed.function is not embed


def test_one_with_a_name_has_a_queue_of_its_own(queue, send, address):
    @queue.handler(name="emails", retry=Retry(max=2, base=1), lease=5)
    def mail(to: str) -> None:
        raise ValueError(to)

    mail.enqueue("ann")
    assert (mail.queue.name, mail.queue.path, queue.pending()) == ("emails", queue.path, 0)
    assert (mail.queue.options["lease"], queue.options["lease"]) == (5, 60)
    assert mail.queue.drain() == DrainReport(postponed=1)
    queue.close()
    assert mail.queue.closed


def test_settings_are_not_handed_down_to_it(open_queue):
    with open_queue("emails") as emails:
        emails.configure(lease=5)
    with open_queue(lease=30, durability="normal") as queue:

        @queue.handler(name="emails")
        def mail(to: str) -> None: ...

        assert (mail.queue.options["lease"], mail.queue.options["durability"]) == (5, "normal")
        with pytest.raises(TypeError, match="give it a name"):
            queue.handler(lease=5)(unannotated)


def test_a_worker_serves_all_of_them(queue, send, until):
    seen = []

    @queue.handler(name="emails")
    def mail(to: str) -> None:
        seen.append(to)

    send.enqueue("ann")
    mail.enqueue("ben")
    worker = queue.worker(concurrency=2)
    assert worker.drain() == DrainReport(done=2)
    assert (queue.sent, seen) == ([("ann", "hello", None)], ["ben"])
    worker.start()
    mail.enqueue("cid")
    until(lambda: seen[1:])
    assert worker.stop().stopped


def test_a_typed_queue_is_served_in_its_type_by_a_worker(open_queue):
    with open_queue(type=Doc) as queue:

        @queue.handler
        def embed(doc: Doc) -> str:
            return doc.title

        queue.enqueue(Doc("t", NOW))
        assert queue.worker().drain().done == 1
        assert queue.get(1).result == "t"


def unannotated(to):
    """No annotation."""


def starred(*to: str) -> None:
    """No names."""


def late_item(to: str, item: Item) -> None:
    """The item comes first."""


def impossible(to: complex) -> None:
    """Not JSON."""


def unreadable(to: Missing) -> None:  # noqa: F821 - on purpose
    """No such name."""


async def awaited(to: str) -> None:
    """Not for threads."""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (unannotated, "the argument 'to' of unannotated needs an annotation"),
        (starred, "each argument of a handler needs a name"),
        (late_item, "the item comes first"),
        (impossible, "the argument 'to' of impossible: content cannot be a complex"),
        (unreadable, "the annotations of unreadable cannot be read"),
        (awaited, "register it with an AsyncQueue"),
    ],
)
def test_a_function_whose_arguments_cannot_be_content_is_refused(queue, function, text):
    for register in (queue.handler, queue.handler(name="other")):
        with pytest.raises(TypeError) as raised:
            register(function)
        assert text in str(raised.value)
    assert queue._handlers == {}


def test_groups_are_not_for_a_registered_handler(queue, send):
    with pytest.raises(ValueError, match="one item at a time"):
        queue.drain(batch="group")


def test_asyncio_awaits_it(open_async_queue):
    async def main():
        async with open_async_queue() as queue:
            seen = []

            @queue.handler
            async def embed(doc: Doc) -> Result:
                await asyncio.sleep(0)
                seen.append(doc)
                return Result(1)

            @queue.handler(name="mails")
            async def mail(item: AsyncItem[Any], to: str) -> int:
                await item.set_progress(1.0, to)
                return item.id

            @queue.handler(name="plain")
            def plain(to: str) -> str:
                return to

            ids = [await embed.enqueue(Doc("a", NOW)), await embed.options(priority=1).enqueue(Doc("b", NOW))]
            assert await queue.drain(concurrency=2) == DrainReport(done=2)
            assert {doc.title for doc in seen} == {"a", "b"}
            assert [(await queue.get(qid)).result for qid in ids] == [{"words": 1}] * 2
            assert await embed(Doc("c", NOW)) == Result(1)
            mailed = await mail.enqueue("ann")
            await mail.queue.drain()
            assert (await mail.queue.get(mailed)).progress_note == "ann"
            sent = await plain.enqueue("ben")
            await plain.queue.drain()
            assert (await plain.queue.get(sent)).result == "ben"
            await queue.enqueue({"doc": 1})
            assert await queue.drain() == DrainReport(failed=1)

    asyncio.run(main())


def test_options_say_more_about_the_item(queue, send):
    later = send.options(delay=60, key="k").enqueue("later")
    first = send.options(priority=5, group="g", headers={"from": "me"}).enqueue("first")
    assert queue.get(key="k").id == later
    assert (queue.get(first).group, queue.get(first).headers) == ("g", {"from": "me"})
    queue.drain()
    assert [to for to, _, _ in queue.sent] == ["first"]
