"""tree: an item with what it waits for and what it has made; and the verbs that take all of it."""

import pytest
from in_asyncio import in_loop
from membox_queue import NeededItemError, NewItem, Node


def statuses(queue, *ids):
    return [queue.get(id).status for id in ids]


def shape(node):
    """A tree as nested lists of ids."""
    return [node.id, *[shape(each) for each in (*node.after, *node.children)]]


@pytest.fixture
def report(queue):
    """An item that waits for two pages, one of which waits for a word: the ids of all four."""
    pages = [NewItem("page 1", after=[NewItem("word")]), NewItem("page 2")]
    root = queue.enqueue("report", after=pages)
    first, second = queue.get(root).after
    return root, first.id, second.id, first.after[0].id


def test_a_tree_shows_what_an_item_waits_for(queue, report):
    root, first, second, word = report
    later = queue.enqueue("later", after=[root])
    tree = queue.tree(root)
    assert isinstance(tree, Node)
    assert shape(tree) == [root, [first, [word]], [second]]
    assert tree.item.content == "report"
    assert tree.needed_by == [later]
    assert [node.item.status for node in tree.after] == ["blocked", "pending"]
    assert repr(tree) == f"<Node {root}, blocked, after 2, children 0>"


def test_a_diamond_is_shown_once_in_full(queue):
    top = queue.enqueue("top", after=[NewItem("below")])
    sides = [queue.enqueue(side, after=[top]) for side in "ab"]
    bottom = queue.enqueue("bottom", after=sides)
    first, second = queue.tree(bottom).after
    assert shape(first)[1][0] == shape(second)[1][0] == top
    assert [first.after[0].repeated, second.after[0].repeated] == [False, True]
    assert [len(first.after[0].after), len(second.after[0].after)] == [1, 0]


def test_a_removed_dependency_has_no_item(queue):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a], if_failed="run")
    queue.mark_done(queue.claim())
    queue.mark_done(queue.claim())
    queue.delete(a)
    (node,) = queue.tree(b).after
    assert (node.id, node.item, node.repeated) == (a, None, False)


def test_ten_thousand_children_are_bounded(queue):
    root = queue.enqueue("root", after=[NewItem(n) for n in range(10_000)])
    tree = queue.tree(root)
    assert (len(tree.after), tree.left_out) == (999, 9001)
    assert len(queue.tree(root, limit=20_000).after) == 10_000


def test_a_long_line_is_bounded(queue):
    last = queue.enqueue("first")
    for _ in range(600):
        last = queue.enqueue("next", after=[last])
    node, depth = queue.tree(last), 0
    while node.after:
        node, depth = node.after[0], depth + 1
    assert (depth, node.left_out) == (500, 1)


def test_an_item_that_is_not_there_has_no_tree(queue, open_queue):
    assert queue.tree(5) is None
    assert queue.tree(key="k") is None
    assert queue.tree(open_queue("other").enqueue("a")) is None


def test_cancel_takes_the_whole_tree(queue, report):
    root, first, second, word = report
    running = queue.claim()
    assert running.id == word
    assert queue.cancel(root, tree=True)
    assert statuses(queue, root, first, second) == ["cancelled"] * 3
    assert running.cancelled
    assert queue.get(root).error is None, "it was cancelled by a person, not because of another item"
    assert not queue.mark_done(running)
    assert not queue.cancel(root, tree=True)
    queue.retry(word)
    assert statuses(queue, root, first) == ["cancelled"] * 2


def test_cancel_spares_what_another_item_needs(queue, report):
    root, first, second, word = report
    other = queue.enqueue("other", after=[first])
    queue.cancel(root, tree=True)
    assert statuses(queue, root, second) == ["cancelled"] * 2
    assert statuses(queue, first, word, other) == ["blocked", "pending", "blocked"]


def test_cancel_of_a_tree_leaves_what_has_ended(queue, report):
    root, first, second, word = report
    queue.mark_done(queue.claim())
    queue.cancel(root, tree=True)
    assert statuses(queue, word, first, second, root) == ["done", "cancelled", "cancelled", "cancelled"]


def test_cancel_without_the_tree_leaves_what_the_item_waits_for(queue, report):
    root, first, second, word = report
    assert queue.cancel(root)
    assert statuses(queue, first, second, word) == ["blocked", "pending", "pending"]


def test_retry_of_a_tree_brings_back_what_the_item_waits_for(queue, report):
    root, _, second, _ = report
    queue.mark_failed(queue.claim(), "boom")
    queue.cancel(second)
    queue.cancel(root)
    assert statuses(queue, *report) == ["cancelled", "cancelled", "cancelled", "failed"]
    assert not queue.retry(root)
    assert queue.retry(root, tree=True)
    assert statuses(queue, *report) == ["blocked", "blocked", "pending", "pending"]


def test_delete_takes_the_whole_tree(queue, report):
    root, *_ = report
    with pytest.raises(NeededItemError):
        queue.delete(report[3])
    assert queue.delete(root, tree=True)
    assert sum(queue.counts().values()) == 0
    assert not queue.delete(root, tree=True)


def test_delete_of_a_tree_is_refused_if_something_outside_needs_a_part_of_it(queue, report):
    root, _, _, word = report
    other = queue.enqueue("other", after=[word])
    with pytest.raises(NeededItemError) as raised:
        queue.delete(root, tree=True)
    assert (raised.value.id, raised.value.needed_by) == (word, [other])
    assert sum(queue.counts().values()) == 5


def test_a_tree_reaches_into_other_queues(queue, open_queue):
    pages = open_queue("pages")
    root = queue.enqueue("report", after=[NewItem(n, queue="pages") for n in range(3)])
    assert queue.cancel(root, tree=True)
    assert pages.counts()["cancelled"] == 3
    assert queue.retry(root, tree=True)
    assert pages.counts()["pending"] == 3
    assert queue.delete(root, tree=True)
    assert sum(pages.counts().values()) == 0


def test_a_third_queue_knows_nothing_of_an_item(queue, open_queue):
    other, id = open_queue("other"), queue.enqueue("a")
    assert other.get(id) is None
    assert other.history(id) == []
    for verb in (other.cancel, other.retry, other.delete, other.answer, other.run_now):
        assert verb(id) is False
    for verb in (other.cancel, other.retry, other.delete):
        assert verb(id, tree=True) is False
    assert queue.get(id).status == "pending"


def test_what_was_enqueued_here_can_be_listed(queue, open_queue):
    id = queue.enqueue("a")
    open_queue("other").enqueue("b")
    assert [item.id for item in queue.items(home=True)] == [id]
    assert queue.get(id).home == "ingest"


@in_loop
async def test_in_asyncio_trees_are_awaited(aqueue):
    id = await aqueue.enqueue("a", after=[NewItem("b")])
    assert shape(await aqueue.tree(id)) == [id, [1]]
    assert await aqueue.cancel(id, tree=True)
    assert await aqueue.retry(id, tree=True)
    assert await aqueue.delete(id, tree=True)
