"""enqueue_many: all or none, in one transaction."""

import asyncio
from datetime import date

import pytest
from membox_queue import BY_CONTENT, DuplicateItemError, NewItem, PayloadTooLargeError, QueueFullError


def test_contents_and_new_items_go_in_together_and_their_ids_come_back_in_order(queue):
    ids = queue.enqueue_many(["a", b"b", {"c": 1}, NewItem("d", project="p", priority=5, headers={"h": 1})])
    assert ids == [1, 2, 3, 4]
    assert [item.content for item in queue.items()] == ["a", b"b", {"c": 1}, "d"]
    last = queue.get(4)
    assert (last.project, last.priority, last.headers) == ("p", 5, {"h": 1})


def test_any_iterable_will_do(queue):
    assert queue.enqueue_many(str(n) for n in range(3)) == [1, 2, 3]
    assert queue.enqueue_many(()) == []


@pytest.mark.parametrize("bad", [float("nan"), object(), "\ud800"])
def test_one_bad_element_keeps_all_out(queue, bad):
    with pytest.raises((TypeError, ValueError)):
        queue.enqueue_many(["good", bad, "good"])
    assert queue.pending() == 0


def test_an_error_says_which_element_it_is_about(queue, open_queue):
    with pytest.raises(TypeError, match=r"^items\[2\]: content\[0\] is a set"):
        queue.enqueue_many(["a", NewItem("b"), [{1}]])
    with open_queue("numbers", type=int) as numbers, pytest.raises(TypeError, match=r"^items\[1\]: "):
        numbers.enqueue_many([1, "two"])
    with open_queue("small", max_bytes=3) as small, pytest.raises(PayloadTooLargeError, match=r"^items\[1\]: "):
        small.enqueue_many([1, [1, 2, 3]])


def test_an_iterator_that_fails_half_way_keeps_all_out(queue):
    def broken():
        yield "good"
        raise LookupError

    with pytest.raises(LookupError):
        queue.enqueue_many(broken())
    assert queue.pending() == 0


def test_an_iterator_may_use_the_queue_itself(queue):
    queue.enqueue_many(queue.enqueue("inner") for _ in range(2))
    assert [item.content for item in queue.items()] == ["inner", "inner", 1, 2]


def test_a_new_item_says_what_it_carries_but_does_not_spill_it():
    new = NewItem("x" * 100 + "secret")
    assert new.content == "x" * 100 + "secret"
    assert "secret" not in repr(new)


@pytest.mark.parametrize("single", ["text", b"bytes", 5, None])
def test_a_single_content_is_not_taken_for_a_list(queue, single):
    with pytest.raises(TypeError):
        queue.enqueue_many(single)
    assert queue.pending() == 0


@pytest.mark.parametrize("items", [{"a": 1}, bytearray(b"ab"), "ab", b"ab"], ids=repr)
def test_what_would_fall_apart_into_pieces_is_refused(queue, items):
    with pytest.raises(TypeError, match="iterable of contents"):
        queue.enqueue_many(items)
    assert queue.pending() == 0


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (NewItem("a 'short' text"), """<NewItem "a 'short' text">"""),
        (NewItem("x" * 1000, priority=5, group="a"), f"<NewItem '{'x' * 40}'…, priority=5, group='a'>"),
        (NewItem({"a": [1]}, delay=2.5), """<NewItem {"a":[1]}, delay=2.5>"""),
        (NewItem(b"abc", key=BY_CONTENT), "<NewItem of 3 bytes, key=BY_CONTENT>"),
        (NewItem(object(), headers={"a": "b" * 99}), f"<NewItem of object, headers={{'a': '{'b' * 33}…>"),
    ],
)
def test_an_item_to_enqueue_shows_the_beginning_of_its_content_and_its_options(item, shown):
    assert repr(item) == shown


def test_items_go_into_several_queues_in_one_call(queue, open_queue):
    pages, mails = open_queue("pages"), open_queue("mails")
    ids = queue.enqueue_many(["here", NewItem("a", queue="pages"), NewItem("b", queue=mails, priority=2), "here too"])
    assert ids == [1, 2, 3, 4]
    assert [item.content for item in queue.items()] == ["here", "here too"]
    assert [(item.content, item.queue) for item in pages.items()] == [("a", "pages")]
    assert [(item.content, item.priority) for item in mails.items()] == [("b", 2)]


def test_a_queue_that_was_unknown_exists_from_then_on(queue, open_queue):
    queue.enqueue_many([NewItem("a", queue="new one")])
    assert open_queue("new one").counts()["pending"] == 1


def test_if_one_of_several_queues_refuses_nothing_is_written_to_any(queue, open_queue):
    open_queue("small", max_bytes=3)
    with pytest.raises(PayloadTooLargeError):
        queue.enqueue_many(["a", NewItem("b", queue="other"), NewItem("long", queue="small")])
    full = open_queue("full", max_pending=1)
    with pytest.raises(QueueFullError) as raised:
        queue.enqueue_many(["a", NewItem("b", queue="other"), NewItem("c", queue="full"), NewItem("d", queue="full")])
    assert "full" in str(raised.value)
    full.enqueue("fills it")
    with pytest.raises(QueueFullError):
        queue.enqueue_many(["a", NewItem("b", queue="other"), NewItem("c", queue="full")])
    with pytest.raises(DuplicateItemError):
        queue.enqueue_many(
            [NewItem("b", queue="other", key="k"), NewItem("c", queue="other", key="k", on_duplicate="raise")]
        )
    assert queue.pending() == open_queue("other").pending() == 0


def test_a_limit_of_the_queue_that_enqueues_is_not_one_of_the_others(open_queue):
    small = open_queue("small", max_bytes=3, max_pending=1)
    assert len(small.enqueue_many([NewItem("much longer", queue="large"), NewItem("x", queue="large"), "abc"])) == 3


def test_a_limit_that_another_process_has_set_meanwhile_holds(queue, open_queue):
    queue.enqueue_many([NewItem("long", queue="other")])
    open_queue("other").configure(max_bytes=3)
    with pytest.raises(PayloadTooLargeError):
        queue.enqueue_many([NewItem("long", queue="other")])


def test_a_key_belongs_to_the_queue_that_the_item_goes_into(queue, open_queue):
    first = queue.enqueue("a", key="k")
    other = NewItem("b", queue="other", key="k")
    (second,) = queue.enqueue_many([other])
    assert second != first
    assert queue.enqueue_many([other, NewItem("c", key="k")]) == [second, first]


def test_content_is_converted_by_the_type_of_the_queue_it_goes_into(queue, open_queue):
    dates = open_queue("dates", type=date)
    numbers = open_queue("numbers", type=int)
    (id,) = queue.enqueue_many([NewItem(date(2026, 6, 14), queue=dates)])
    assert dates.get(id).content == date(2026, 6, 14)
    with pytest.raises(TypeError, match=r"^items\[1\]: "):
        numbers.enqueue_many([1, NewItem("two", queue=numbers)])
    assert numbers.enqueue_many([NewItem("a text", queue="ingest")]) == [id + 1]
    with pytest.raises(TypeError, match=r"^items\[0\]: .*date"):
        queue.enqueue_many([NewItem(date(2026, 6, 14), queue="dates")])
    with pytest.raises(TypeError, match=r"numbers|int"):
        numbers.enqueue_many([NewItem("two", queue="numbers")])


@pytest.mark.parametrize("wrong", [5, b"pages", object()])
def test_what_is_no_queue_is_refused(wrong):
    with pytest.raises(TypeError, match="queue must be a name or a Queue"):
        NewItem("a", queue=wrong)


def test_an_impossible_name_is_refused():
    with pytest.raises(ValueError, match="name"):
        NewItem("a", queue="")


def test_a_full_queue_among_several_is_waited_for(queue, open_queue, background, until):
    full = open_queue("full", max_pending=1)
    full.enqueue("first")
    waiting = background(queue.enqueue_many, ["a", NewItem("b", queue="full")], wait=30)
    until(lambda: not waiting.done())
    with full.claim():
        assert waiting.result(30) == [2, 3]


def test_a_task_puts_items_into_several_queues(open_async_queue):
    async def main():
        async with open_async_queue() as queue, open_async_queue("dates", type=date) as dates:
            ids = await queue.enqueue_many(["a", NewItem(date(2026, 6, 14), queue=dates)])
            return ids, (await dates.get(ids[1])).content

    assert asyncio.run(main()) == ([1, 2], date(2026, 6, 14))
