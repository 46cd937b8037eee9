"""Typed content that older code wrote: what does not fit fails, and the claim goes on."""

from __future__ import annotations

import asyncio
import threading

import pytest
from membox_queue import AsyncQueue, ContentError, DrainReport, Retry
from typed_documents import Letter, Page, Positive


@pytest.fixture
def pages(open_queue):
    with open_queue(type=Page) as queue:
        yield queue


@pytest.fixture
def mixed(open_queue, pages):
    """Good and bad content, in turn; the good is numbered."""
    with open_queue() as plain:
        for number in range(1, 4):
            plain.enqueue_many([{"text": f"bad {number}"}, {"number": number}])
        plain.enqueue("raw text")
    return pages


def errors(queue):
    return [item.error for item in queue.items("failed")]


MISSING = "ContentError: the content does not fit Page: content.number is missing"


RAW = "ContentError: the content does not fit Page: content is a str, not a Page"


ALL_BAD = [MISSING, MISSING, MISSING, RAW]


def test_a_claim_goes_on_to_the_next_item_that_fits(mixed):
    assert [mixed.claim().content for _ in range(3)] == [Page(1), Page(2), Page(3)]
    assert errors(mixed) == ALL_BAD[:3]
    assert mixed.claim() is None
    assert errors(mixed) == ALL_BAD
    assert mixed.counts() == {**mixed.counts(), "pending": 0, "processing": 3, "failed": 4}


def test_the_failure_is_counted_and_kept_with_the_content_as_it_was(mixed):
    mixed.claim()
    item = mixed.get(1)
    assert (item.status, item.retries, item.error, item.content) == ("failed", 1, MISSING, {"text": "bad 1"})
    assert [failed.content for failed in mixed.failures()] == [{"text": "bad 1"}]
    assert [attempt.ending for attempt in mixed.history(1)] == ["failed"]


def test_a_claim_that_waits_goes_on_waiting_after_one_that_does_not_fit(pages, open_queue):
    found = []
    waiting = threading.Thread(target=lambda: found.append(pages.claim(wait=60)))
    with open_queue() as plain:
        waiting.start()
        bad = plain.enqueue("bad")
        assert plain.wait(bad, timeout=60).status == "failed"
        plain.enqueue({"number": 1})
        waiting.join(60)
    assert [item.content for item in found] == [Page(1)]


def test_a_batch_has_those_that_fit(mixed):
    assert [item.content for item in mixed.claim_many(10)] == [Page(1), Page(2), Page(3)]
    assert errors(mixed) == ALL_BAD
    assert mixed.claim_many(10) == []


def test_an_empty_batch_means_that_nothing_is_due(mixed):
    assert [item.content for item in mixed.claim_many(1)] == [Page(1)]


def test_with_a_policy_it_is_tried_again_for_code_that_knows_better(open_queue, clock):
    with open_queue(type=Page, retry=Retry(max=3, base=10, jitter=0)) as queue, open_queue() as plain:
        plain.enqueue({"text": "older"})
        assert queue.claim() is None
        assert (queue.get(1).status, queue.get(1).retries) == ("pending", 1)
        clock.advance(10)
        assert plain.claim().content == {"text": "older"}


def test_looking_shows_what_fits_in_its_type_and_the_rest_as_it_is_stored(mixed):
    assert [item.content for item in mixed.items()] == [
        {"text": "bad 1"},
        Page(1),
        {"text": "bad 2"},
        Page(2),
        {"text": "bad 3"},
        Page(3),
        "raw text",
    ]


def test_what_a_dataclass_says_against_its_values_is_told(open_queue):
    with open_queue(type=list[Positive]) as queue, open_queue() as plain:
        plain.enqueue([{"number": 1}, {"number": 0}])
        assert queue.claim() is None
        assert "content[1] is refused by Positive: ValueError: must be positive" in queue.get(1).error


def test_keys_that_the_type_does_not_have_are_passed_over(open_queue):
    with open_queue() as plain, open_queue(type=Page) as pages, open_queue(type=Letter) as letters:
        plain.enqueue_many([{"number": 1, "new": True}, {"to": "you", "new": True}])
        assert pages.claim().content == Page(1)
        assert letters.claim().content == {"to": "you"}


def test_a_group_is_handed_out_up_to_the_first_that_does_not_fit(pages, open_queue):
    with open_queue() as plain:
        for content in ({"number": 1}, {"number": 2}, "bad", {"number": 3}):
            plain.enqueue(content, group="g")
    batch = pages.claim_group()
    assert [item.content for item in batch] == [Page(1), Page(2)]
    assert [item.status for item in pages.items()] == ["processing", "processing", "failed", "pending"]
    assert pages.claim_group() == []
    assert pages.mark_done_many(batch) == 2
    (last,) = pages.claim_group()
    assert (last.content, last.retries) == (Page(3), 0)


def test_a_group_whose_first_does_not_fit_goes_on_with_the_rest(pages, open_queue):
    with open_queue() as plain:
        for content in ("bad", "worse", {"number": 1}):
            plain.enqueue(content, group="g")
    assert [item.content for item in pages.claim_group()] == [Page(1)]
    assert errors(pages) == [RAW, RAW]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_drain_fails_what_does_not_fit_and_handles_the_rest(mixed, concurrency):
    seen, told = [], []
    report = mixed.drain(
        lambda item: seen.append(item.content),
        concurrency=concurrency,
        on_error=lambda error, item, phase: told.append((type(error), phase)),
    )
    assert report == DrainReport(done=3, failed=4)
    assert sorted(page.number for page in seen) == [1, 2, 3]
    assert told == [(ContentError, "handler")] * 4
    assert errors(mixed) == ALL_BAD


def test_whoever_looks_at_the_progress_sees_typed_content_too(mixed):
    seen, handled = [], []
    mixed.drain(
        lambda item: handled.append(item.content),
        progress=lambda event: seen.append((event.kind, event.item.content)),
    )
    assert handled == [Page(1), Page(2), Page(3)]
    assert [content for kind, content in seen if kind == "done"] == handled
    assert [content for kind, content in seen if kind == "claimed"][:2] == [{"text": "bad 1"}, Page(1)]


def test_work_goes_on_after_what_does_not_fit(mixed):
    seen = []
    assert mixed.work(lambda item: seen.append(item.content), limit=7) == DrainReport(done=3, failed=4)
    assert seen == [Page(1), Page(2), Page(3)]


def test_a_drain_of_whole_groups_keeps_their_order(pages, open_queue):
    with open_queue() as plain:
        for content in ("bad", {"number": 1}, {"number": 2}, "bad", {"number": 3}):
            plain.enqueue(content, group="g")
        plain.enqueue({"number": 9})
    seen = []

    def handler(items):
        seen.append([item.content.number for item in items])
        return [item.content.number for item in items]

    report = pages.drain(handler, batch="group")
    assert sorted(seen) == [[1, 2], [3], [9]]
    assert (report.done, report.failed, report.lost) == (4, 2, 0)
    assert [item.result for item in pages.items("done")] == [1, 2, 3, 9]
    assert all(item.retries == 0 for item in pages.items("done"))


def test_with_item_has_typed_content(mixed):
    with mixed.claim() as item:
        assert item.content == Page(1)
    assert mixed.get(item.id).status == "done"
    assert mixed.wait(item.id).content == Page(1)


def test_asyncio_has_typed_content_and_goes_on_after_what_does_not_fit(mixed, address):
    async def main():
        async with AsyncQueue[Page](address) as queue:
            with pytest.raises(TypeError, match="content is a str"):
                await queue.enqueue("bad")
            async for item in queue:
                async with item:
                    first = item.content
                break
            (second,) = await queue.claim_many(1)
            assert await queue.mark_done(second)
            seen = []

            async def handler(item):
                seen.append(item.content)

            report = await queue.drain(handler)
            shown = await queue.get(2)
            return first, second.content, seen, report, shown.content

    first, second, seen, report, shown = asyncio.run(main())
    assert (first, second, seen, shown) == (Page(1), Page(2), [Page(3)], Page(1))
    assert report == DrainReport(done=1, failed=2)
    assert errors(mixed) == ALL_BAD


def test_what_only_stops_the_program_gives_everything_back(open_queue):
    class Shape:
        def __init__(self):
            self.left = 2

        def decode(self, raw):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return raw

    with open_queue() as queue:
        queue.enqueue_many(["a", "b", "c"])
        queue._set_shape(Shape())
        with pytest.raises(KeyboardInterrupt):
            queue.claim_many(3)
    with open_queue() as queue:
        assert [(item.status, item.retries) for item in queue.items()] == [("pending", 0)] * 3


def test_a_type_that_exits_the_program_is_counted_against_its_item_alone(open_queue):
    class Shape:
        def decode(self, raw):
            if raw == "b":
                raise SystemExit
            return raw

    with open_queue() as queue:
        for content in "abc":
            queue.enqueue(content, group="g")
        queue._set_shape(Shape())
        with pytest.raises(SystemExit):
            queue.claim_group()
    with open_queue() as queue:
        assert [(item.status, item.retries) for item in queue.items()] == [
            ("pending", 0),
            ("pending", 1),
            ("pending", 0),
        ]
