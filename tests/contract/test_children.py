"""children: items that another has made, in its `after` or with `item.enqueue`, and items with stages."""

from dataclasses import dataclass

from membox_queue import NewItem, Next, Queue


def finish(queue, id, result=None):
    """Claim the next item, which must be this one, and mark it done."""
    item = queue.claim()
    assert item.id == id
    assert queue.mark_done(item, result)


def test_children_are_enqueued_first_in_one_call_and_nested(queue, open_queue):
    pages, words = open_queue("pages"), open_queue("words")
    inner = [NewItem(n, queue="words") for n in range(2)]
    id = queue.enqueue("merge", after=[NewItem("page", queue=pages, after=inner), NewItem("note")])
    page, note = queue.get(id).after
    assert [item.id < page.id for item in page.after] == [True, True]
    assert (page.queue, page.status, page.parent) == ("pages", "blocked", id)
    assert (note.queue, note.status, note.parent) == ("ingest", "pending", id)
    assert {item.parent for item in page.after} == {page.id}
    words.mark_done_many(words.claim_many(2))
    finish(pages, page.id)
    finish(queue, note.id)
    assert queue.claim().id == id


def test_children_inherit_what_they_were_not_given(queue, clock):
    headers = {"traceparent": "00-1", "tracestate": "s", "channel": "x"}
    children = [NewItem("a"), NewItem("b", priority=0, project="own", expires=5, headers={"traceparent": "own"})]
    id = queue.enqueue("c", after=children, priority=7, project="p", expires=60, headers=headers)
    a, b = queue.get(id).after
    assert (a.priority, a.project, a.headers) == (7, "p", {"traceparent": "00-1", "tracestate": "s"})
    assert a.expires_at == queue.get(id).expires_at
    assert (b.priority, b.project, b.headers) == (0, "own", {"traceparent": "own"})
    assert (b.expires_at - clock.now).total_seconds() == 5


def test_a_child_whose_key_is_in_use_is_found_and_not_adopted(queue):
    known = queue.enqueue("known", key="k")
    id = queue.enqueue("b", after=[NewItem("again", key="k")])
    assert [needed.id for needed in queue.get(id).after] == [known]
    assert queue.get(known).parent is None


def test_a_parent_whose_key_is_in_use_brings_no_children(queue):
    known = queue.enqueue("known", key="k")
    assert queue.enqueue("b", key="k", after=[NewItem("child")]) == known
    assert queue.counts() == {**queue.counts(), "pending": 1, "blocked": 0}


def test_typed_children_are_converted_by_the_type_of_their_queue(open_queue, engine):
    @dataclass
    class Page:
        number: int

    pages = Queue(engine.address, "pages", type=Page)
    queue = open_queue()
    id = queue.enqueue("merge", after=[NewItem(Page(1), queue=pages)])
    assert pages.claim().content == Page(1)
    assert queue.get(id).after[0].content == {"number": 1}
    pages.close()


def test_an_item_that_moves_on_frees_at_its_end_and_not_at_its_stages(queue, open_queue):
    other = open_queue("other")
    id = queue.enqueue("a")
    waiting = queue.enqueue("b", after=[id])
    queue.mark_done(queue.claim(), Next("second stage", queue="other"))
    assert queue.get(waiting).status == "blocked"
    finish(other, id, "end")
    assert [needed.result for needed in queue.claim().after] == ["end"]


def test_a_moved_item_is_found_from_home_and_where_it_is_but_not_elsewhere(queue, open_queue):
    other, third = open_queue("other"), open_queue("third")
    id = queue.enqueue("a")
    queue.mark_done(queue.claim(), Next(queue="other"))
    assert queue.get(id).queue == other.get(id).queue == "other"
    assert third.get(id) is None
    assert queue.tree(id).id == other.tree(id).id == id
    assert third.tree(id) is None
    assert [item.id for item in queue.items(home=True)] == [id]
    assert queue.coverage_note() == "1 ingest pending — results may be incomplete"
    assert not third.cancel(id)
    assert not third.cancel(id, tree=True)
    assert queue.cancel(id)
    assert queue.retry(id)
    assert queue.answer(id, 1)
    assert queue.wait(id, 5).result == 1
    assert not third.delete(id)
    assert queue.delete(id)


def test_a_child_of_a_handler_waits_as_any_item(queue):
    id = queue.enqueue("a")
    report = queue.drain(lambda item: item.enqueue("child", after=[item]) if item.id == id else [item.after[0].id])
    assert report.done == 2
    assert queue.get(2).result == [id]
    assert [node.id for node in queue.tree(id).children] == [2]


def test_a_child_of_a_handler_cannot_wait_for_what_does_not_exist(queue):
    queue.enqueue("a")
    queue.drain(lambda item: item.enqueue("child", after=[999]))
    assert "there is no item 999" in queue.get(1).error
    assert sum(queue.counts().values()) == 1
