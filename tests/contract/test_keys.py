"""Keys: at most one unfinished item per queue and key."""

import asyncio
import math
import pickle
import re

import pytest
from membox_queue import BY_CONTENT, DuplicateItemError, NewItem, new_key


def test_the_existing_unfinished_item_comes_back(queue):
    first = queue.enqueue("one", key="k")
    assert queue.enqueue("two", key="k") == first
    item = queue.claim()
    assert (item.content, item.key) == ("one", "k")
    assert queue.enqueue("three", key="k") == first
    assert queue.pending() == 1


def test_a_finished_item_gives_its_key_back(queue):
    first = queue.enqueue("one", key="k")
    queue.mark_done(queue.claim())
    assert queue.enqueue("two", key="k") != first


def test_keys_of_other_queues_and_other_keys_do_not_matter(queue, open_queue):
    queue.enqueue("x", key="k")
    assert queue.enqueue("x", key="l") == 2
    with open_queue("mail") as mail:
        assert mail.enqueue("x", key="k") == 3


def test_duplicates_inside_a_batch_collapse_onto_the_first(queue):
    assert queue.enqueue_many([NewItem("one", key="k"), NewItem("two", key="k"), "three"]) == [1, 1, 2]


def test_raise_tells_the_id_and_writes_nothing(queue):
    queue.enqueue("one", key="k")
    with pytest.raises(DuplicateItemError) as refused:
        queue.enqueue_many(["before", NewItem("two", key="k", on_duplicate="raise")])
    assert refused.value.id == 1
    assert pickle.loads(pickle.dumps(refused.value)).id == 1
    assert queue.pending() == 1


def test_replace_gives_a_pending_item_new_content_in_its_old_place(queue):
    queue.enqueue("old", key="k", priority=1)
    queue.enqueue("other")
    assert queue.enqueue({"new": 1}, key="k", on_duplicate="replace", priority=1) == 1
    item = queue.claim()
    assert (item.id, item.content) == (1, {"new": 1})
    with pytest.raises(DuplicateItemError):
        queue.enqueue("newer", key="k", on_duplicate="replace")


def test_replace_changes_everything_it_is_given_and_what_it_is_not(queue, clock):
    queue.enqueue("old", key="k", group="g", project="p", headers={"h": 1}, priority=3, max_retries=7, delay=60)
    queue.enqueue("new", key="k", group="h", on_duplicate="replace")
    item = queue.claim()
    assert (item.content, item.group, item.headers, item.priority) == ("new", "h", {}, 0)
    assert (item.project, item.max_retries, item.run_at) == (None, None, None)
    assert queue.group_counts() == {"h": {"pending": 0, "processing": 1}}


def test_an_unfinished_item_is_found_before_a_later_one_whose_key_is_reserved(queue, clock):
    queue.enqueue("failed", key="k")
    queue.mark_failed(queue.claim(), "no")
    clock.advance(61)
    queue.enqueue("done", key="k", key_ttl=60)
    queue.mark_done(queue.claim())
    queue.retry(1)
    assert queue.enqueue("new", key="k", on_duplicate="replace") == 1


def test_a_ttl_keeps_the_key_of_a_finished_item_for_a_while(queue, clock):
    first = queue.enqueue("one", key="k", key_ttl=60)
    queue.mark_done(queue.claim())
    clock.advance(59)
    assert queue.enqueue("two", key="k") == first
    clock.advance(2)
    assert queue.enqueue("three", key="k") != first


def test_a_key_may_be_kept_for_ever(queue, clock):
    first = queue.enqueue("x", key="k", key_ttl=math.inf)
    queue.drain(lambda item: None)
    clock.advance(200 * 365 * 86400)
    assert queue.enqueue("y", key="k") == first
    assert queue.prune(older_than=0) == 0
    [second] = queue.enqueue_many([NewItem("z", key="l", key_ttl=math.inf)])
    with pytest.raises(DuplicateItemError):
        queue.enqueue("z", key="l", key_ttl=math.inf, on_duplicate="raise")
    assert queue.get(key="l").id == second


def test_a_ttl_also_matches_items_that_were_enqueued_without_one(queue, clock):
    first = queue.enqueue("one", key="k")
    queue.mark_done(queue.claim())
    clock.advance(30)
    assert queue.enqueue("two", key="k", key_ttl=60) == first
    clock.advance(60)
    assert queue.enqueue("three", key="k", key_ttl=60) != first


def test_by_content_enqueues_the_same_content_once(queue):
    first = queue.enqueue({"a": [1]}, key=BY_CONTENT)
    assert queue.enqueue({"a": [1]}, key=BY_CONTENT) == first
    assert queue.enqueue({"a": [2]}, key=BY_CONTENT) != first
    nested = queue.enqueue({"x": 1, "y": [{"p": 0.1, "q": 2}]}, key=BY_CONTENT)
    assert queue.enqueue({"y": [{"q": 2, "p": 0.1}], "x": 1}, key=BY_CONTENT) == nested
    assert queue.enqueue('{"a":[1]}', key=BY_CONTENT) != first
    assert pickle.loads(pickle.dumps(BY_CONTENT)) is BY_CONTENT


def test_by_content_equal_dicts_are_the_same_whatever_their_order(queue):
    first = queue.enqueue({"a": 1, "b": [{"c": 2, "d": 0.1}]}, key=BY_CONTENT)
    assert queue.enqueue({"b": [{"d": 0.1, "c": 2}], "a": 1}, key=BY_CONTENT) == first
    assert queue.enqueue({"b": [{"d": 0.1, "c": 1}], "a": 2}, key=BY_CONTENT) != first
    assert queue.enqueue([1, 2], key=BY_CONTENT) != queue.enqueue([2, 1], key=BY_CONTENT)
    assert list(queue.claim().content) == ["a", "b"]


def test_an_item_is_found_by_its_key(queue):
    queue.enqueue("one", key="k")
    queue.mark_done(queue.claim())
    newest = queue.enqueue("two", key="k")
    assert queue.get(key="k").id == newest
    assert queue.get(key="nobody") is None


def test_a_failed_item_whose_key_is_in_use_again_stays(queue):
    queue.enqueue("old", key="k")
    queue.mark_failed(queue.claim(), "no")
    queue.enqueue("new", key="k")
    assert queue.retry_failed() == 0
    assert not queue.retry(1)
    queue.mark_done(queue.claim())
    assert queue.retry_failed() == 1


def test_two_failed_items_with_one_key_come_back_one_at_a_time(queue):
    for text in ("one", "two"):
        queue.enqueue(text, key="k")
        queue.mark_failed(queue.claim(), "no")
    assert queue.retry_failed() == 1


def test_of_failed_items_with_one_key_the_latest_below_its_ceiling_comes_back(queue):
    queue.enqueue("below", key="k")
    queue.mark_failed(queue.claim(), "no")
    queue.enqueue("at its ceiling", key="k", max_retries=1)
    queue.mark_failed(queue.claim(), "no")
    assert queue.retry_failed() == 1
    assert queue.claim().content == "below"


@pytest.mark.parametrize(
    "options",
    [
        {"key": ""},
        {"key_ttl": 5},
        {"on_duplicate": "raise"},
        {"key": "k", "on_duplicate": "x"},
        {"key": "k", "key_ttl": -1},
    ],
    ids=repr,
)
def test_keys_that_make_no_sense_are_refused(queue, options):
    with pytest.raises(ValueError, match=r"key|on_duplicate"):
        queue.enqueue("x", **options)
    assert queue.pending() == 0


def test_new_keys_are_readable_and_differ():
    assert re.fullmatch(r"discord_[0-9a-f]{16}", new_key("discord"))
    assert new_key("a") != new_key("a")


def test_an_item_cancelled_while_it_runs_does_not_swallow_the_next_one_of_its_key(queue):
    queue.enqueue("old", key="k")
    old = queue.claim()
    queue.cancel(old.id)
    new = queue.enqueue("new", key="k")
    assert new != old.id
    assert queue.enqueue("newer", key="k") == new
    assert queue.claim().id == new
    assert not queue.mark_done(old)
    assert queue.get(old.id).status == "cancelled"
    assert queue.retry(old.id)
    assert queue.claim().content == "old"


def test_an_item_in_progress_is_not_replaced_and_the_error_says_why(queue):
    queue.enqueue("x", key="k")
    queue.claim()
    with pytest.raises(DuplicateItemError, match="exists already: 1, which is in progress"):
        queue.enqueue("y", key="k", on_duplicate="replace")


class TestSkip:
    def test_a_duplicate_that_is_skipped_has_no_id(self, queue):
        first = queue.enqueue("first", key="k", on_duplicate="skip")
        assert first is not None
        assert queue.enqueue("second", key="k", on_duplicate="skip") is None
        assert [item.content for item in queue.items()] == ["first"]

    def test_the_caller_of_a_batch_knows_which_items_are_new(self, queue):
        queue.enqueue("old", key="b")
        items = [NewItem(name, key=name, on_duplicate="skip") for name in "abc"]
        ids = queue.enqueue_many(items)
        assert [found is None for found in ids] == [False, True, False]

    def test_one_whose_key_is_free_again_is_new(self, queue):
        queue.enqueue("first", key="k")
        queue.mark_done(queue.claim())
        assert queue.enqueue("second", key="k", on_duplicate="skip") == 2

    def test_a_reserved_key_is_skipped_after_the_end(self, queue):
        queue.enqueue("first", key="k", key_ttl=60)
        queue.mark_done(queue.claim())
        assert queue.enqueue("second", key="k", key_ttl=60, on_duplicate="skip") is None

    def test_asyncio(self, open_async_queue):
        async def main():
            async with open_async_queue() as queue:
                assert await queue.enqueue("x", key="k", on_duplicate="skip") == 1
                assert await queue.enqueue("y", key="k", on_duplicate="skip") is None

        asyncio.run(main())
