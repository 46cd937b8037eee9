"""items: pages of items, by status and project, in either direction."""

import pytest
from membox_queue import NewItem


@pytest.fixture
def full(queue):
    queue.enqueue_many(NewItem(n, project="even" if n % 2 == 0 else "odd") for n in range(1, 8))
    queue.mark_done(queue.claim())
    queue.mark_failed(queue.claim(), "boom")
    queue.claim()
    return queue


def ids(items):
    return [item.id for item in items]


def test_all_items_of_the_queue_oldest_first(full, open_queue):
    with open_queue("mail") as mail:
        mail.enqueue("m")
    assert ids(full.items()) == [1, 2, 3, 4, 5, 6, 7]
    assert ids(full.items(newest_first=True)) == [7, 6, 5, 4, 3, 2, 1]


def test_filters_by_status_and_project(full):
    assert ids(full.items("done")) == [1]
    assert ids(full.items(status="failed")) == [2]
    assert ids(full.items("processing")) == [3]
    assert ids(full.items("pending")) == [4, 5, 6, 7]
    assert full.items("blocked") == full.items("cancelled") == []
    assert ids(full.items(project="even")) == [2, 4, 6]
    assert ids(full.items("pending", project="even")) == [4, 6]
    assert full.items(project="") == []


def test_filters_by_group(queue):
    queue.enqueue_many(NewItem(n, group=group, project="p" if n > 2 else None) for n, group in enumerate("abcab"))
    queue.enqueue("free")
    queue.mark_done(queue.claim(group="a"))
    assert ids(queue.items(group="a")) == [1, 4]
    assert ids(queue.items(group="a", newest_first=True)) == [4, 1]
    assert ids(queue.items("pending", group="a")) == [4]
    assert ids(queue.items(group="b", project="p")) == [5]
    assert ids(queue.items(group="b", limit=1)) == [2]
    assert ids(queue.items(group="b", limit=1, after=2)) == [5]
    assert queue.items(group="nobody") == []


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_follow_each_other_without_gap_or_overlap(full, newest_first):
    seen, after = [], None
    while page := full.items(limit=3, after=after, newest_first=newest_first):
        assert len(page) <= 3
        seen += ids(page)
        after = page[-1].id
    assert seen == sorted(range(1, 8), reverse=newest_first)


def test_new_items_do_not_disturb_the_pages(full):
    first = full.items(limit=3)
    full.delete(2)
    full.enqueue("new")
    assert ids(full.items(limit=100, after=first[-1].id)) == [4, 5, 6, 7, 8]


def test_a_page_has_fifty_items_unless_told(queue):
    queue.enqueue_many(range(60))
    assert len(queue.items()) == 50
    assert len(queue.items(limit=60)) == 60


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"status": "lost"}, ValueError),
        ({"status": "Pending"}, ValueError),
        ({"status": 5}, TypeError),
        ({"project": 5}, TypeError),
        ({"group": 5}, TypeError),
        ({"limit": 0}, ValueError),
        ({"limit": -1}, ValueError),
        ({"limit": "5"}, TypeError),
        ({"after": "5"}, TypeError),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(queue, arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        queue.items(**arguments)
