"""item.gather: a handler that waits for items it makes, without holding a slot."""

import asyncio

import pytest
from membox_queue import NewItem, Next, Worker


def test_concurrency_one_is_enough_for_parent_and_children_in_one_queue(queue):
    calls = []

    def handler(item):
        calls.append(item.content)
        if item.content != "parent":
            return item.content * 2
        pages = item.gather("pages", [NewItem(3), 1, NewItem(2, priority=9)])
        return [page.result for page in pages]

    id = queue.enqueue("parent")
    report = queue.drain(handler)
    assert (report.blocked, report.done) == (1, 4)
    assert queue.get(id).result == [6, 2, 4]
    assert calls == ["parent", 2, 3, 1, "parent"]
    assert [item.parent for item in queue.items()][1:] == [id] * 3


def test_meanwhile_the_item_is_blocked_and_counts_nothing(queue):
    id = queue.enqueue("x", group="g")
    queue.enqueue("behind it", group="g")
    with queue.claim() as item:
        item.gather("a", [NewItem("child", queue="other")])
        pytest.fail("the block goes on")
    item = queue.get(id)
    assert (item.status, item.retries, item.worker, item.started_at) == ("blocked", 0, None, None)
    assert [each.ending for each in queue.history(id)] == ["blocked"]
    assert queue.claim().content == "behind it"


def test_a_second_gather_waits_in_turn_and_both_give_their_items(queue, open_queue, address):
    def parent(item):
        first = item.gather("first", [NewItem(n, queue="pages") for n in (1, 2)])
        second = item.gather("second", [NewItem(sum(page.result for page in first), queue="pages")])
        return [[page.result for page in first], [page.result for page in second]]

    id = queue.enqueue("x")
    open_queue("pages", keep_last=0)
    report = Worker(address, {"ingest": parent, "pages": lambda item: item.content * 10}).drain()
    assert (report.blocked, report.done) == (2, 4)
    assert queue.get(id).result == [[10, 20], [300]]


def test_nothing_to_gather_is_an_empty_list_at_once(queue):
    queue.enqueue("x")
    assert queue.drain(lambda item: item.gather("none", [])).done == 1


def test_children_are_made_once_whatever_is_given_the_second_time(queue):
    def handler(item):
        if item.parent is not None:
            return item.content
        pages = item.gather("pages", [f"of attempt {item.attempt}"] * item.attempt)
        if item.attempt < 4:
            raise LookupError
        return [page.content for page in pages]

    id = queue.enqueue("x")
    for _ in range(4):
        queue.drain(handler, retry_failed=True)
    assert queue.get(id).result == ["of attempt 1"]
    assert len(queue.items()) == 2


def test_a_child_that_fails_cancels_its_parent_and_comes_back_with_it(queue):
    fails = [True]

    def handler(item):
        if item.content == "child":
            if fails[0]:
                raise LookupError("no page")
            return "page"
        return [page.result for page in item.gather("pages", ["child"])]

    id = queue.enqueue("parent")
    queue.drain(handler)
    (child,) = queue.failures()
    assert (queue.get(id).status, queue.get(id).error) == (
        "cancelled",
        f"it waits for item {child.id}, which failed",
    )
    fails[0] = False
    queue.retry(child.id)
    assert queue.drain(handler).done == 2
    assert queue.get(id).result == ["page"]


def test_if_told_to_run_anyway_the_parent_sees_what_happened(queue):
    def handler(item):
        if item.content == "child":
            raise LookupError("no page")
        (page,) = item.gather("pages", ["child"], if_failed="run")
        return [page.status, page.error]

    id = queue.enqueue("parent")
    queue.drain(handler)
    assert queue.get(id).result == ["failed", "LookupError: no page"]


def test_children_inherit(queue, open_queue):
    queue.enqueue("x", priority=3, project="p", headers={"traceparent": "00-a"}, expires=60)
    with queue.claim() as item:
        item.gather("a", [NewItem("b", queue="other")])
    child = open_queue("other").claim()
    assert (child.priority, child.project, child.headers, child.parent) == (3, "p", {"traceparent": "00-a"}, item.id)
    assert child.expires_at == item.expires_at


def test_what_is_done_already_is_not_waited_for(queue, open_queue):
    other = open_queue("other")
    other.enqueue("y", key="k", key_ttl=3600)
    other.mark_done(other.claim(), "answer")

    def handler(item):
        (known,) = item.gather("a", [NewItem("y", queue="other", key="k")])
        return known.result

    id = queue.enqueue("x")
    report = queue.drain(handler)
    assert (report.blocked, report.done) == (1, 1)
    assert queue.get(id).result == "answer"


def test_bad_items_raise_at_the_call(queue):
    queue.enqueue("x")
    with queue.claim() as item:
        for bad, error in [([object()], TypeError), ("text", TypeError), (5, TypeError)]:
            with pytest.raises(error):
                item.gather(f"a {bad!r}"[:50], bad)
        with pytest.raises(ValueError, match="skip"):
            item.gather("b", [NewItem("c", key="k", on_duplicate="skip")])
        with pytest.raises(ValueError, match="if_failed"):
            item.gather("d", ["e"], if_failed="wait")
    assert len(queue.items()) == 1


def test_a_circle_is_refused(queue):
    def handler(item):
        item.gather("a", [NewItem("b", queue="other", after=[item.id])])

    id = queue.enqueue("x")
    report = queue.drain(handler)
    assert report.failed == 1
    assert "neither would ever run" in queue.get(id).error
    assert len(queue.queues()) == 1 or queue.queues()["other"]["blocked"] == 0


def test_swallowed_it_fails_the_attempt(queue):
    def handler(item):
        try:
            item.gather("pages", ["child"])
        except BaseException:
            return "went on"

    id = queue.enqueue("x")
    queue.drain(handler)
    assert 'went on after gather "pages"' in queue.get(id).error
    assert len(queue.items()) == 1


def test_a_bare_claim_cannot_gather(queue):
    queue.enqueue("x")
    with pytest.raises(ValueError, match="bare claim"):
        queue.claim().gather("a", ["b"])


def test_a_stage_may_wait_for_items_it_makes(queue, open_queue, address):
    def split(item):
        return Next("merge", queue="merge", after=[NewItem(n, queue="pages") for n in item.content])

    def merge(item):
        return [page.result for page in item.after]

    id = queue.enqueue([3, 1, 2])
    handlers = {"ingest": split, "pages": lambda item: item.content * 2, "merge": merge}
    report = Worker(address, handlers).drain()
    assert (report.moved, report.done) == (1, 4)
    assert queue.get(id).result == [6, 2, 4]
    assert [item.parent for item in open_queue("pages").items()] == [id] * 3


def test_a_stage_may_wait_for_others_and_forgets_those_of_the_one_before(queue):
    first, second = queue.enqueue_many(
        ["first", "second"],
    )
    id = queue.enqueue("x", after=[first])
    queue.mark_done(queue.claim(), "one")
    queue.mark_done(queue.claim(), "two")
    item = queue.claim()
    assert [each.result for each in item.after] == ["one"]
    queue.mark_done(item, Next(after=[second, first]))
    item = queue.claim()
    assert (item.id, item.stage, [each.result for each in item.after]) == (id, 1, ["two", "one"])
    queue.mark_done(item, Next())
    assert queue.claim().after == []


def test_a_stage_that_would_wait_for_itself_fails_the_attempt(queue):
    id = queue.enqueue("x")
    waits = queue.enqueue("waits", after=[id])
    for after in ([id], [waits]):
        report = queue.drain(lambda item, after=after: Next(after=after))
        assert report.failed == 1
        assert "neither would ever run" in queue.get(id).error
        queue.retry(id)
    item = queue.claim()
    with pytest.raises(ValueError, match="neither would ever run"):
        queue.mark_done(item, Next(after=[waits]))
    with pytest.raises(ValueError, match="no item 99"):
        queue.mark_done(item, Next(after=[99]))
    assert (queue.get(id).stage, queue.get(id).status) == (0, "processing")


def test_a_stage_whose_need_has_failed_is_as_it_says(queue):
    failed = queue.enqueue("x")
    queue.mark_failed(queue.claim(), "no")
    one, two = queue.enqueue_many(["one", "two"])
    queue.mark_done(queue.claim(), Next(after=[failed]))
    queue.mark_done(queue.claim(), Next(after=[failed], if_failed="run"))
    assert [queue.get(id).status for id in (one, two)] == ["cancelled", "pending"]


def test_in_asyncio(open_async_queue):
    async def handler(item):
        if item.content != "parent":
            return item.content
        pages = await item.gather("pages", [NewItem(1), 2])
        return [page.result for page in pages]

    async def main():
        async with open_async_queue() as queue:
            id = await queue.enqueue("parent")
            report = await queue.drain(handler, concurrency=2)
            assert (report.blocked, report.done) == (1, 3)
            return (await queue.get(id)).result

    assert asyncio.run(main()) == [1, 2]


def test_a_drain_that_lingers_stays_while_something_waits_for_what_is_in_progress(queue, open_queue, background):
    pages = open_queue("pages")
    queue.enqueue("merge", after=[NewItem("page", queue="pages")])
    page = pages.claim()
    assert queue.drain(lambda _: None) == queue.drain(lambda _: None, exclusive=False)
    staying = background(queue.drain, lambda item: item.after[0].result, linger=5)
    with pytest.raises(TimeoutError):
        staying.result(0.5)
    pages.mark_done(page, "text")
    assert staying.result(30).done == 1


def test_a_drain_that_lingers_does_not_stay_for_what_nobody_works_on(queue):
    queue.enqueue("merge", after=[NewItem("page", queue="pages")])
    assert queue.drain(lambda _: None, linger=5).done == 0
