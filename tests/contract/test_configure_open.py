"""What others configure holds for queues that are open: for their next claim, their items, those who wait."""

import json
import pickle
import threading
from datetime import timedelta

import pytest
from membox_queue import (
    DrainReport,
    NewItem,
    PayloadTooLargeError,
    QueueFullError,
    Rate,
    Retry,
    SettingsConflictError,
)
from programs import PROGRAMS


@pytest.fixture
def elsewhere(address, start):
    """Configure the queue in another process."""

    def configure(**settings):
        process = start(PROGRAMS / "configure.py", address, json.dumps(settings))
        process.communicate(timeout=30)
        assert process.returncode == 0

    return configure


def test_who_configures_gives_up_an_own_argument_of_that_name(open_queue, elsewhere):
    with open_queue(lease=5, max_retries=7) as queue:
        queue.configure(lease=6)
        assert (queue.options["lease"], queue.options["max_retries"]) == (6, 7)
        elsewhere(lease=8)
        queue.claim()
        assert queue.options["lease"] == 8
        queue.configure(lease=None)
        assert queue.options["lease"] == 60


def test_an_open_queue_takes_over_what_another_process_stores_at_its_next_claim(queue, elsewhere, clock):
    before = queue.options
    queue.enqueue_many(["a", "b"])
    elsewhere(lease=600, max_retries=1)
    item = queue.claim()
    assert queue.options["lease"] == 600
    assert item.lease_until - item.started_at == timedelta(seconds=600)
    queue.mark_failed(item, "no")
    assert queue.retry_failed() == 0
    elsewhere(lease=None)
    queue.claim()
    assert queue.options == {**before, "max_retries": 1}


def test_configure_changes_a_setting_also_for_those_who_were_opened_with_it(open_queue, elsewhere):
    with open_queue(lease=5, max_retries=7) as queue:
        elsewhere(lease=600, max_retries=1)
        queue.enqueue("x")
        queue.claim()
        assert (queue.options["lease"], queue.options["max_retries"]) == (5, 1)
        with pytest.raises(SettingsConflictError, match="max_retries"):
            open_queue(max_retries=7)


@pytest.mark.parametrize("given", [None, 1])
def test_priority_counts_nothing_inside_a_group_whose_limit_another_process_raises(open_queue, elsewhere, given):
    with open_queue(group_limit=given) as queue:
        queue.enqueue_many(NewItem(str(number), group="a", priority=number) for number in range(4))
        elsewhere(group_limit=3)
        assert [queue.claim().content for _ in range(3)] == ["0", "1", "2"]
        assert queue.options["group_limit"] == 3


def test_a_group_limit_that_was_given_is_what_the_file_says_from_then_on(open_queue):
    with open_queue(group_limit=3) as queue, open_queue() as other:
        assert queue.options["group_limit"] == 3
        other.configure(group_limit=None)
        assert queue.options["group_limit"] == 1


def test_an_item_ends_by_what_was_configured_while_it_was_held(queue, open_queue):
    queue.enqueue_many(["a", "b", "c"])
    a, b, c = queue.claim_many(3)
    with open_queue() as other:
        other.configure(retry=Retry(max=9), keep_content=False)
    queue.mark_failed(a, "no")
    assert queue.get(a.id).status == "pending"
    queue.mark_done(b)
    assert queue.get(b.id).content is None
    with open_queue() as other:
        other.configure(keep_content=True)
    queue.mark_done_many([c])
    assert queue.get(c.id).content == "c"


def test_a_loop_ends_items_by_what_was_configured_while_they_were_handled(queue, open_queue):
    def handler(item):
        with open_queue() as other:
            other.configure(retry=Retry(max=9), keep_content=False)
        if item.content == "bad":
            raise ValueError

    queue.enqueue_many(["good", "bad"])
    assert queue.drain(handler) == DrainReport(done=1, postponed=1)
    assert queue.get(1).content is None


def test_who_brings_failed_items_back_or_tidies_up_goes_by_what_is_configured(queue, open_queue):
    queue.enqueue_many(["a", "b"])
    queue.mark_failed(queue.claim(), "no")
    queue.mark_done(queue.claim())
    with open_queue() as other:
        other.configure(max_retries=1, keep_last=0)
    assert queue.retry_failed() == 0
    queue.tend()
    assert queue.counts()["done"] == 0


@pytest.mark.parametrize("content", ["x" * 50, ["x" * 50]])
def test_nobody_is_refused_by_a_size_that_was_raised_since(queue, open_queue, content):
    queue.configure(max_bytes=10)
    queue.enqueue("x")
    item = queue.claim()
    with open_queue() as other:
        other.configure(max_bytes=100)
        queue.enqueue(content)
        other.configure(max_bytes=200)
        queue.enqueue_many([NewItem(content), content, content * 3])
        other.configure(max_bytes=300)
        queue.schedule("s", content * 5, every=60)
        other.configure(max_bytes=1000)
        assert queue.mark_done(item, content * 10)
        assert queue.drain(lambda item: content) == DrainReport(done=4)


def test_a_limit_that_was_lowered_since_holds_for_who_only_enqueues(queue, open_queue):
    queue.enqueue("x" * 50)
    with open_queue() as other:
        other.configure(max_bytes=10)
        with pytest.raises(PayloadTooLargeError):
            queue.enqueue("x" * 50)
        other.configure(max_pending=1)
        with pytest.raises(QueueFullError):
            queue.enqueue("x")
        other.configure(max_pending=2)
        queue.enqueue("x")


def test_an_enqueue_that_waits_gets_in_when_another_process_makes_room(queue, elsewhere):
    queue.configure(max_pending=1)
    queue.enqueue("a")
    thread = threading.Thread(target=lambda: queue.enqueue("b", wait=30))
    thread.start()
    elsewhere(max_pending=2)
    thread.join(30)
    assert queue.counts()["pending"] == 2


def test_a_waiting_claim_learns_that_more_is_allowed(queue, elsewhere):
    queue.configure(rate=Rate(1, per=3600))
    queue.enqueue_many(["a", "b"])
    queue.claim()
    found = []
    thread = threading.Thread(target=lambda: found.append(queue.claim(wait=30)))
    thread.start()
    elsewhere(rate=None)
    thread.join(30)
    assert found[0].content == "b"


def test_a_group_limit_that_is_configured_moves_groups_at_once(queue, elsewhere):
    queue.enqueue_many(NewItem(str(number), group="a") for number in range(6))
    assert (queue.claim().content, queue.claim()) == ("0", None)
    elsewhere(group_limit=3)
    assert [item.content for item in queue.claim_many(9)] == ["1", "2"]
    elsewhere(group_limit=1)
    assert queue.claim() is None
    elsewhere(group_limit=4)
    elsewhere(group_limit=None)
    assert queue.claim() is None


def test_an_open_queue_shows_the_group_limit_that_another_process_stores(queue, elsewhere):
    elsewhere(group_limit=3)
    queue.claim()
    assert queue.options["group_limit"] == 3


def test_a_lowered_group_limit_takes_back_what_stood_in_front(queue):
    queue.configure(group_limit=3)
    queue.enqueue_many(NewItem(str(number), group="a", priority=number) for number in range(4))
    queue.configure(group_limit=None)
    assert [item.content for item in queue.claim_many(9)] == ["0"]


def test_a_pickled_queue_takes_its_own_options_along_and_the_rest_from_the_file(open_queue, elsewhere):
    with open_queue("mail", lease=5, rate=Rate(2, per=3), keep_content=False, worker="me") as queue:
        queue.configure(max_retries=1, rate=Rate(4))
        with pickle.loads(pickle.dumps(queue)) as copy:
            assert (copy.name, copy.path) == (queue.name, queue.path)
            assert copy.options == queue.options
            assert (copy.options["lease"], copy.options["rate"], copy.options["worker"]) == (5, Rate(4), "me")
        queue.configure(lease=7)
        with pickle.loads(pickle.dumps(queue)) as copy:
            queue.configure(lease=None)
            copy.claim()
            assert copy.options["lease"] == 60
