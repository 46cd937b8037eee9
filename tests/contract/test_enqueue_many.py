"""enqueue_many: all or none, in one transaction."""

import pytest
from membox_queue import BY_CONTENT, NewItem, PayloadTooLargeError


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
