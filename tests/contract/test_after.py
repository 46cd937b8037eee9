"""after: items that wait for others, and what the end of those means."""

import pickle

import pytest
from in_asyncio import in_loop
from membox_queue import DuplicateItemError, NewItem, QueueFullError, Retry


def statuses(queue, *ids):
    return [queue.get(id).status for id in ids]


def finish(queue, id, result=None):
    """Claim the next item, which must be this one, and mark it done."""
    item = queue.claim()
    assert item.id == id
    assert queue.mark_done(item, result)


def fail(queue, id):
    item = queue.claim()
    assert item.id == id
    assert queue.mark_failed(item, "boom")


def test_an_item_waits_for_the_last_of_three_and_gets_their_results_in_the_order_given(queue):
    a, b, c = queue.enqueue_many(["a", "b", "c"])
    merged = queue.enqueue("merge", after=[c, a, b])
    for id in (a, b):
        finish(queue, id, queue.get(id).content.upper())
        assert queue.get(merged).status == "blocked"
        assert queue.counts()["blocked"] == 1
    finish(queue, c, "C")
    assert queue.get(merged).status == "pending"
    item = queue.claim()
    assert item.id == merged
    assert [needed.result for needed in item.after] == ["C", "A", "B"]


def test_an_item_whose_dependencies_are_all_done_is_pending_at_once(queue):
    id = queue.enqueue("a")
    finish(queue, id)
    assert statuses(queue, queue.enqueue("b", after=[id]), queue.enqueue("c", after=[])) == ["pending", "pending"]


def test_an_item_may_wait_for_one_item_twice(queue):
    id = queue.enqueue("a")
    twice = queue.enqueue("b", after=[id, id])
    finish(queue, id, 1)
    assert [needed.result for needed in queue.claim().after] == [1, 1]
    assert queue.get(twice).status == "processing"


def test_a_hundred_items_wait_for_one_and_a_diamond_comes_together(queue):
    top = queue.enqueue("top")
    sides = [queue.enqueue(f"side {n}", after=[top]) for n in range(100)]
    bottom = queue.enqueue("bottom", after=sides)
    finish(queue, top)
    assert set(statuses(queue, *sides)) == {"pending"}
    queue.mark_done_many(queue.claim_many(100))
    assert queue.get(bottom).status == "pending"


def test_items_can_be_given_instead_of_ids(queue, open_queue):
    other = open_queue("other")
    first = other.get(other.enqueue("a"))
    id = queue.enqueue("b", after=[first])
    assert [needed.id for needed in queue.get(id).after] == [first.id]
    claimed = other.claim()
    assert queue.get(queue.enqueue("c", after=[claimed])).status == "blocked"


def test_a_future_time_is_kept_by_an_item_that_is_freed(queue, clock):
    id = queue.enqueue("a")
    later = queue.enqueue("b", after=[id], delay=60)
    finish(queue, id)
    assert queue.get(later).status == "pending"
    assert queue.claim() is None
    clock.advance(61)
    assert queue.claim().id == later


def test_a_freed_item_stands_in_the_order_of_its_id(queue):
    a = queue.enqueue("a", priority=1)
    freed = queue.enqueue("b", after=[a])
    young = queue.enqueue("c")
    finish(queue, a)
    assert [queue.claim().id, queue.claim().id] == [freed, young]


@pytest.mark.parametrize("if_failed", ["cancel", "run"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "expired"])
def test_what_the_end_of_a_dependency_means(queue, clock, if_failed, when, end):
    id = queue.enqueue("a", expires=60 if end == "expired" else None)
    if when == "after":
        waiting = queue.enqueue("b", after=[id], if_failed=if_failed)
    if end == "expired":
        clock.advance(61)
        assert queue.wait(id, 10).status == "cancelled"
    elif end == "cancelled":
        queue.cancel(id)
    elif end == "failed":
        fail(queue, id)
    else:
        finish(queue, id)
    if when == "before":
        waiting = queue.enqueue("b", after=[id], if_failed=if_failed)
    item = queue.get(waiting)
    if end == "done" or if_failed == "run":
        assert item.status == "pending"
        assert queue.claim().after[0].status == ("cancelled" if end == "expired" else end)
    else:
        assert item.status == "cancelled"
        assert item.error == f"it waits for item {id}, which {'failed' if end == 'failed' else 'was cancelled'}"


def test_an_item_that_a_policy_retries_has_not_failed(open_queue, clock):
    queue = open_queue(retry=Retry(max=2, base=1, jitter=0))
    id = queue.enqueue("a")
    waiting = queue.enqueue("b", after=[id])
    fail(queue, id)
    assert queue.get(waiting).status == "blocked"
    clock.advance(10)
    fail(queue, id)
    assert queue.get(waiting).status == "cancelled"


def test_a_dependency_that_kills_its_worker_fails_and_the_clean_up_runs(open_queue, clock):
    queue = open_queue(max_retries=2, lease=10)
    id = queue.enqueue("a")
    clean_up = queue.enqueue("clean up", after=[id], if_failed="run")
    for _ in range(2):
        assert queue.claim().id == id
        clock.advance(11)
    assert queue.claim().id == clean_up
    assert queue.get(id).status == "failed"


def test_a_failure_cancels_three_levels_and_spares_what_runs_anyway(queue):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    c = queue.enqueue("c", after=[b])
    anyway = queue.enqueue("anyway", after=[c], if_failed="run")
    d = queue.enqueue("d", after=[c])
    fail(queue, a)
    assert statuses(queue, b, c, d, anyway) == ["cancelled", "cancelled", "cancelled", "pending"]
    assert queue.get(b).error == f"it waits for item {a}, which failed"
    assert queue.get(c).error == f"it waits for item {b}, which was cancelled"
    assert [item.id for item in queue.failures()] == [a]


@pytest.mark.parametrize("verb", ["retry", "retry_failed", "retry_all", "answer"])
def test_bringing_the_cause_back_revives_what_it_cancelled(queue, verb):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    c = queue.enqueue("c", after=[b])
    fail(queue, a)
    assert statuses(queue, b, c) == ["cancelled", "cancelled"]
    getattr(queue, verb)(*[a] * (verb in ("retry", "answer")))
    assert statuses(queue, b, c) == ["pending" if verb == "answer" else "blocked", "blocked"]
    assert queue.get(c).error is None


def test_an_item_with_two_failed_dependencies_comes_back_with_the_second(queue):
    a, b = queue.enqueue_many(["a", "b"])
    both = queue.enqueue("both", after=[a, b])
    fail(queue, a)
    fail(queue, b)
    queue.retry(a)
    assert queue.get(both).status == "cancelled"
    queue.retry(b)
    assert queue.get(both).status == "blocked"


def test_what_a_person_cancelled_stays_cancelled(queue):
    a = queue.enqueue("a")
    before, after = queue.enqueue("before", after=[a]), queue.enqueue("after", after=[a])
    assert queue.cancel(before)
    fail(queue, a)
    assert queue.cancel(after), "it is cancelled for good now"
    assert not queue.cancel(after)
    queue.retry(a)
    assert statuses(queue, before, after) == ["cancelled", "cancelled"]
    finish(queue, a)
    assert statuses(queue, before, after) == ["cancelled", "cancelled"]
    assert queue.retry(before)
    assert queue.get(before).status == "pending"


def test_an_item_whose_key_is_in_use_again_is_not_revived(queue):
    a = queue.enqueue("a")
    first = queue.enqueue("b", after=[a], key="k")
    queue.cancel(a)
    second = queue.enqueue("b", key="k")
    third = queue.enqueue("c", after=[a], if_failed="run")
    assert queue.retry(a)
    assert statuses(queue, first, second, third) == ["cancelled", "pending", "pending"]


def test_of_two_cancelled_items_with_one_key_the_latest_is_revived(queue):
    a = queue.enqueue("a")
    first = queue.enqueue("b", after=[a], key="k")
    queue.cancel(a)
    second = queue.enqueue("b", after=[a], key="k")
    assert statuses(queue, first, second) == ["cancelled", "cancelled"]
    assert queue.retry(a)
    assert statuses(queue, first, second) == ["cancelled", "blocked"]


def test_a_line_of_two_thousand_falls_and_comes_back(queue):
    ids = [queue.enqueue("first")]
    for _ in range(20):
        new = []
        for _ in range(100):
            new.append(NewItem("next", after=[ids[-1]]))
            ids += queue.enqueue_many(new)
            new.clear()
    fail(queue, ids[0])
    while queue.counts()["blocked"]:
        assert queue.claim() is None
    assert queue.counts()["cancelled"] == 2000
    assert queue.retry(ids[0])
    finish(queue, ids[0])
    assert queue.claim().id == ids[1]
    while queue.counts()["cancelled"]:
        assert queue.claim() is None
    assert queue.counts()["blocked"] == 1999


def test_retry_is_refused_while_a_dependency_has_failed_unless_it_comes_too(queue):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    c = queue.enqueue("c", after=[b])
    fail(queue, a)
    assert not queue.retry(c)
    assert not queue.retry(b)
    assert queue.retry(c, tree=True)
    assert statuses(queue, a, b, c) == ["pending", "blocked", "blocked"]
    assert not queue.retry(c, tree=True), "nothing has ended"
    with pytest.raises(TypeError, match="one item"):
        queue.retry([a, b], tree=True)


def test_an_answered_failure_that_still_waits_is_blocked_when_it_comes_back(queue):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    assert queue.answer(b, error="no")
    assert queue.retry(b)
    assert queue.get(b).status == "blocked"


@pytest.mark.parametrize("after", [[999], [-1], [0]])
def test_an_id_that_does_not_exist_is_refused_and_nothing_is_written(queue, after):
    with pytest.raises(ValueError, match="there is no item"):
        queue.enqueue_many(["a", NewItem("b", after=[NewItem("c"), *after])])
    assert sum(queue.counts().values()) == 0


def test_an_id_of_a_removed_item_is_refused(queue):
    id = queue.enqueue("a")
    queue.delete(id)
    with pytest.raises(ValueError, match=f"there is no item {id} to wait for"):
        queue.enqueue("b", after=[id])


@pytest.mark.parametrize("after", [3, "3", NewItem("a"), {"id": 3}, ["x"], [1.5], [True], [None]])
def test_what_is_no_list_of_items_is_refused(queue, after):
    with pytest.raises((TypeError, ValueError), match="after"):
        queue.enqueue("b", after=after)
    assert sum(queue.counts().values()) == 0


def test_wrong_options_are_refused(queue):
    id = queue.enqueue("a")
    with pytest.raises(ValueError, match="if_failed must be 'cancel' or 'run', not \"wait\""):
        queue.enqueue("b", after=[id], if_failed="wait")
    with pytest.raises(ValueError, match="on_duplicate='replace'"):
        queue.enqueue("b", after=[id], key="k", on_duplicate="replace")
    nested = NewItem("deep")
    for _ in range(100):
        nested = NewItem("deep", after=[nested])
    with pytest.raises(ValueError, match="nested deeper than 100"):
        NewItem("deep", after=[nested])


def test_a_blocked_item_cannot_be_replaced(queue):
    id = queue.enqueue("a")
    queue.enqueue("b", after=[id], key="k")
    with pytest.raises(DuplicateItemError, match="waits for other items"):
        queue.enqueue("c", key="k", on_duplicate="replace")


def test_a_full_queue_refuses_items_but_not_children_and_freed_ones(open_queue):
    queue = open_queue(max_pending=2)
    id = queue.enqueue("merge", after=[NewItem(n) for n in range(5)])
    assert queue.counts() == {**queue.counts(), "pending": 5, "blocked": 1}
    with pytest.raises(QueueFullError):
        queue.enqueue("one more")
    queue.mark_done_many(queue.claim_many(5))
    assert queue.get(id).status == "pending"


def test_a_blocked_item_holds_up_nobody_of_its_group_and_stands_by_its_id_when_free(queue, open_queue):
    other = open_queue("other")
    gate = other.enqueue("gate")
    blocked = queue.enqueue("b", after=[gate], group="g")
    first, second = queue.enqueue_many([NewItem("c", group="g"), NewItem("d", group="g")])
    finish(queue, first)
    finish(other, gate)
    finish(queue, blocked)
    finish(queue, second)
    assert queue.group_counts() == {}


def test_children_in_the_group_of_their_parent_finish(queue):
    id = queue.enqueue("parent", group="g", after=[NewItem("child", group="g"), NewItem("child", group="g")])
    done = []
    queue.drain(lambda item: done.append(item.id))
    assert done[-1] == id
    assert len(done) == 3


def test_blocked_items_do_not_hold_a_drain(queue, open_queue):
    id = open_queue("other").enqueue("a")
    queue.enqueue("b", after=[id])
    assert queue.drain(lambda item: None).done == 0


def test_a_chain_of_items_is_drained_at_once(queue):
    ids = [queue.enqueue("a")]
    for _ in range(5):
        ids.append(queue.enqueue("next", after=[ids[-1]]))
    done = []
    queue.drain(lambda item: done.append(item.id))
    assert done == ids


def test_the_end_in_one_queue_wakes_a_worker_of_another(queue, open_queue, background, until):
    other = open_queue("other")
    gate = queue.enqueue("gate")
    id = other.enqueue("b", after=[gate])
    claim = background(other.claim, wait=30)
    finish(queue, gate)
    assert claim.result(10).id == id


def test_a_wait_ends_when_the_item_is_cancelled_because_of_another(queue, background):
    gate = queue.enqueue("gate")
    id = queue.enqueue("b", after=[gate])
    wait = background(queue.wait, id, 30)
    fail(queue, gate)
    assert wait.result(10).status == "cancelled"


def test_an_unfinished_pause_frees_items_and_claims_none(queue):
    gate = queue.enqueue("gate")
    id = queue.enqueue("b", after=[gate])
    item = queue.claim()
    queue.pause()
    queue.mark_done(item)
    assert queue.get(id).status == "pending"
    assert queue.claim() is None


def test_blocked_items_can_be_listed_and_counted(queue):
    gate = queue.enqueue("gate")
    ids = [queue.enqueue(f"item {n}", after=[gate], project="p" if n % 2 else None) for n in range(6)]
    assert [item.id for item in queue.items("blocked")] == ids
    assert [item.id for item in queue.items("blocked", newest_first=True, limit=2)] == ids[:-3:-1]
    assert [item.id for item in queue.items("blocked", project="p", after=ids[1])] == [ids[3], ids[5]]
    assert queue.coverage_note() == "7 ingests pending — results may be incomplete"


def test_a_copy_of_an_item_says_where_to_ask_for_its_dependencies(queue):
    copy = pickle.loads(pickle.dumps(queue.get(queue.enqueue("a"))))
    with pytest.raises(ValueError, match=r"queue\.get\(1\)"):
        _ = copy.after


@in_loop
async def test_in_asyncio_dependencies_are_awaited(aqueue):
    id = await aqueue.enqueue("b", after=[NewItem("a")])
    seen = []

    async def handle(item):
        seen.append([needed.result for needed in await item.after()])
        return item.content

    await aqueue.drain(handle)
    assert seen == [[], ["a"]]
    item = await aqueue.wait(id)
    assert item.status == "done"
    assert [needed.content for needed in item.after] == ["a"]
    last = await aqueue.enqueue("c", after=[item])
    assert (await aqueue.tree(last)).after[0].id == id
