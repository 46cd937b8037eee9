"""rate and group_rate: never more claims than so many in any period, counted in the file over all processes."""

import itertools
import pickle
import threading
import time
from datetime import timedelta

import pytest
from membox_queue import DrainReport, NewItem, Rate
from programs import PROGRAMS


def fill(queue, *groups):
    queue.enqueue_many(NewItem(f"{group}{number}", group=group) for number in range(1, 6) for group in groups)


def take(queue, limit=99, **options):
    return [item.content for item in queue.claim_many(limit, **options)]


def test_a_rate_says_what_it_is():
    rate = Rate(3, per=timedelta(minutes=5))
    assert (rate.count, rate.per) == (3, 300)
    assert Rate(3).per == 60
    assert rate == Rate(count=3, per=300) == pickle.loads(pickle.dumps(rate))
    assert len({rate, Rate(3, per=300), Rate(4, per=300), Rate(3)}) == 3
    assert eval(repr(Rate(3, per=0.5))) == Rate(3, per=0.5)
    with pytest.raises(AttributeError):
        rate.count = 5


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ((0,), ValueError, "count"),
        ((-1,), ValueError, "count"),
        ((2**32,), ValueError, "count"),
        ((1.5,), TypeError, "count"),
        (("5",), TypeError, "count"),
        ((1, 0), ValueError, "per"),
        ((1, -1), ValueError, "per"),
        ((1, 0.0001), ValueError, "per"),
        ((1, float("nan")), ValueError, "per"),
        ((1, float("inf")), ValueError, "per"),
        ((1, "60"), TypeError, "per"),
    ],
)
def test_a_rate_of_nothing_is_refused(arguments, error, word):
    with pytest.raises(error, match=word):
        Rate(*arguments)


def test_no_more_than_so_many_are_claimed_in_a_period(open_queue, clock):
    with open_queue(rate=Rate(2, per=60), lease=9999) as queue:
        queue.enqueue_many(range(1, 9))
        assert queue.claim().content == 1
        clock.advance(20)
        assert queue.claim().content == 2
        clock.advance(39.999)
        assert queue.claim() is None
        clock.advance(0.001)
        assert (queue.claim().content, queue.claim()) == (3, None)
        clock.advance(20)
        assert (queue.claim().content, queue.claim()) == (4, None)
        clock.advance(3600)
        assert take(queue) == [5, 6]


def test_what_is_not_used_is_not_saved_up(open_queue, clock):
    with open_queue(rate=Rate(2, per=60)) as queue:
        clock.advance(86400)
        queue.enqueue_many(range(5))
        assert take(queue) == [0, 1]


def test_every_claim_counts_also_one_that_is_given_back(open_queue, clock):
    with open_queue(rate=Rate(3, per=60)) as queue:
        queue.enqueue_many(["a", "b"])
        queue.release(queue.claim())
        queue.mark_failed(queue.claim(), "no", retry_in=0)
        queue.delete(queue.claim().id)
        assert queue.claim() is None
        clock.advance(60)
        assert queue.claim().content == "b"


def test_claims_of_many_and_of_groups_count_each_item(open_queue, clock):
    with open_queue(rate=Rate(3, per=60), lease=9999) as queue:
        fill(queue, "a")
        queue.enqueue_many(range(5))
        assert take(queue, 2) == ["a1", 0]
        assert take(queue) == [1]
        clock.advance(60)
        assert [item.content for item in queue.claim_group()] == [2]
        assert take(queue, group="a") == []
        assert take(queue) == [3, 4]


def test_a_group_is_taken_only_as_far_as_the_rate_of_the_queue_goes(open_queue, clock):
    with open_queue(rate=Rate(3, per=60), lease=9999) as queue:
        fill(queue, "a")
        batch = queue.claim_group()
        assert [item.content for item in batch] == ["a1", "a2", "a3"]
        clock.advance(60)
        assert (queue.claim_group(), queue.claim()) == ([], None)
        assert queue.mark_done_many(batch) == 3
        assert [item.content for item in queue.claim_group()] == ["a4", "a5"]


def test_a_group_is_taken_only_as_far_as_its_own_rate_goes(open_queue, clock):
    with open_queue(group_rate=Rate(2, per=60), lease=9999) as queue:
        fill(queue, "a", "b")
        first, second = queue.claim_group(), queue.claim_group()
        assert [item.content for item in first + second] == ["a1", "a2", "b1", "b2"]
        assert queue.claim_group() == []
        queue.mark_failed(first[0], "no", retry_in=0)
        assert queue.get(first[1].id).status == "pending"
        clock.advance(60)
        assert [item.content for item in queue.claim_group()] == ["a1", "a2"]


def test_the_rate_holds_for_all_objects_of_the_file(open_queue, clock):
    rate = Rate(2, per=60)
    with open_queue(rate=rate) as one, open_queue(rate=rate) as two, pickle.loads(pickle.dumps(one)) as three:
        one.enqueue_many(range(5))
        assert [one.claim().content, two.claim().content] == [0, 1]
        assert [queue.claim() for queue in (one, two, three)] == [None, None, None]
    with open_queue(rate=rate) as later:
        assert later.claim() is None
        clock.advance(60)
        assert later.claim() is not None


def test_each_queue_of_a_file_counts_for_itself(open_queue):
    with open_queue("a", rate=Rate(1)) as one, open_queue("b", rate=Rate(1)) as two, open_queue("c") as free:
        for queue in (one, two, free):
            queue.enqueue_many(range(3))
        assert [len(take(queue)) for queue in (one, two, free)] == [1, 1, 3]


def test_many_processes_together_keep_the_rate(open_queue, address, start, clock):
    with open_queue() as queue:
        queue.enqueue_many(range(100))
        processes = [start(PROGRAMS / "claim_within_a_rate.py", address, clock.ms, 25) for _ in range(4)]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        taken = [process.stdout.read().split() for process in processes]
        assert [process.wait(30) for process in processes] == [0] * 4
        assert sum(len(part) for part in taken) == len({id for part in taken for id in part}) == 25


def test_many_threads_together_keep_the_rate(open_queue, clock):
    with open_queue(durability="normal", rate=Rate(25, per=60)) as queue:
        queue.enqueue_many(range(100))
        taken, barrier = [], threading.Barrier(4)

        def take_all():
            barrier.wait()
            while item := queue.claim():
                taken.append(item.id)

        threads = [threading.Thread(target=take_all) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(taken) == len(set(taken)) == 25


def test_a_waiting_claim_wakes_at_the_next_slot(open_queue):
    with open_queue(rate=Rate(1, per=0.2)) as queue:
        queue.enqueue_many(range(4))
        moments = [(queue.claim(wait=30).started_at, time.monotonic()) for _ in range(4)]
    for (earlier, _), (later, _) in itertools.pairwise(moments):
        assert timedelta(seconds=0.2) <= later - earlier
    # It looks about when the slot comes, not at the next poll half a second later.
    assert min(later - earlier for (_, earlier), (_, later) in itertools.pairwise(moments)) < 0.4


def test_a_claim_that_waits_for_a_group_wakes_when_its_rate_allows(open_queue):
    with open_queue(group_rate=Rate(1, per=0.2)) as queue:
        fill(queue, "a")
        first = queue.claim(wait=30)
        took = []
        for number in (2, 3, 4):
            queue.mark_done(first)
            began = time.monotonic()
            second = queue.claim(wait=30)
            took.append(time.monotonic() - began)
            assert second.content == f"a{number}"
            assert second.started_at - first.started_at >= timedelta(seconds=0.2)
            first = second
        assert min(took) < 0.4


def test_a_wait_shorter_than_the_next_slot_ends_without_an_item(open_queue):
    with open_queue(rate=Rate(1, per=3600)) as queue:
        queue.enqueue_many(range(2))
        queue.claim()
        assert queue.claim(wait=0.05) is None


def test_waiting_claims_of_several_threads_share_the_slots(open_queue):
    with open_queue(rate=Rate(2, per=0.3)) as queue:
        queue.enqueue_many(range(6))
        moments = []
        threads = [threading.Thread(target=lambda: moments.append(queue.claim(wait=30).started_at)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    moments.sort()
    assert len(moments) == 6
    for earlier, later in zip(moments, moments[2:], strict=False):
        assert later - earlier >= timedelta(seconds=0.3)


def test_work_goes_on_at_the_rate(open_queue):
    with open_queue(rate=Rate(1, per=0.1)) as queue:
        queue.enqueue_many(range(4))
        moments = []
        report = queue.work(lambda item: moments.append(item.started_at), limit=4, concurrency=2)
        assert report.done == 4
        moments.sort()
        for earlier, later in itertools.pairwise(moments):
            assert later - earlier >= timedelta(seconds=0.1)


def test_a_drain_leaves_what_the_rate_does_not_allow(open_queue, clock):
    with open_queue(rate=Rate(2, per=60)) as queue:
        queue.enqueue_many(range(5))
        assert queue.drain(lambda item: None) == DrainReport(done=2)
        assert queue.drain(lambda item: None) == DrainReport()
        clock.advance(60)
        assert queue.drain(lambda item: None) == DrainReport(done=2)


def test_a_drain_that_lingers_waits_for_the_next_slot(open_queue):
    with open_queue(rate=Rate(2, per=0.1)) as queue:
        queue.enqueue_many(range(5))
        assert queue.drain(lambda item: None, linger=5).done == 5


def test_a_drain_that_lingers_waits_for_a_group_that_is_held(open_queue):
    with open_queue(group_rate=Rate(2, per=0.1)) as queue:
        fill(queue, "a")
        assert queue.drain(lambda item: None, linger=5).done == 5


def test_each_group_has_the_rate_for_itself_and_items_without_one_are_free(open_queue, clock):
    with open_queue(group_rate=Rate(2, per=60), group_limit=9, lease=9999) as queue:
        fill(queue, "a", "b")
        queue.enqueue_many(range(5))
        assert take(queue) == ["a1", "b1", "a2", "b2", 0, 1, 2, 3, 4]
        clock.advance(59.999)
        assert take(queue) == []
        clock.advance(0.001)
        assert take(queue) == ["a3", "b3", "a4", "b4"]


def test_a_group_that_is_held_is_not_overtaken(open_queue, clock):
    with open_queue(group_rate=Rate(1, per=60)) as queue:
        fill(queue, "a")
        queue.mark_failed(queue.claim(), "no", retry_in=0)
        queue.enqueue("urgent", group="a", priority=9)
        assert (queue.claim(), queue.claim(group="a"), queue.claim_group()) == (None, None, [])
        order = []
        for _ in range(6):
            clock.advance(60)
            item = queue.claim()
            order.append(item.content)
            assert queue.claim() is None
            queue.mark_done(item)
            assert queue.claim() is None
        assert order == ["a1", "a2", "a3", "a4", "a5", "urgent"]


def test_a_group_may_use_its_rate_while_the_queue_has_none_left(open_queue, clock):
    with open_queue(rate=Rate(3, per=60), group_rate=Rate(1, per=10), lease=9999, group_limit=9) as queue:
        fill(queue, "a", "b")
        assert take(queue) == ["a1", "b1"]
        clock.advance(10)
        assert take(queue) == ["a2"]
        clock.advance(10)
        assert take(queue) == []
        clock.advance(40)
        assert take(queue) == ["b2", "a3"]


def test_many_groups_that_become_free_at_once_do_not_hide_the_one_with_work(open_queue, clock):
    with open_queue(group_rate=Rate(1, per=60)) as queue:
        queue.enqueue_many(NewItem("x", group=f"g{number:03}") for number in range(200))
        queue.mark_done_many(queue.claim_many(200))
        queue.enqueue("work", group="g199")
        assert queue.claim() is None
        clock.advance(60)
        assert queue.claim().content == "work"


def test_a_group_is_free_at_once_when_its_rate_is_taken_away(open_queue):
    with open_queue() as queue:
        queue.configure(group_rate=Rate(1, per=3600))
        fill(queue, "a")
        queue.mark_done(queue.claim())
        assert queue.claim() is None
        queue.configure(group_rate=None)
        assert queue.claim().content == "a2"


def test_a_group_that_is_held_learns_of_a_new_rate(open_queue, clock):
    with open_queue(lease=9999, group_limit=9) as queue, open_queue() as other:
        queue.configure(group_rate=Rate(1, per=3600))
        fill(queue, "a", "b")
        assert take(queue) == ["a1", "b1"]
        clock.advance(30)
        other.configure(group_rate=Rate(2, per=60))
        assert take(queue) == ["a2", "b2"]
        clock.advance(29)
        assert take(queue) == []
        other.configure(group_rate=Rate(1, per=120))
        clock.advance(90)
        assert take(queue) == []
        clock.advance(1)
        assert take(queue) == ["a3", "b3"]


def test_an_object_that_was_given_no_rate_frees_no_group_of_those_who_were(open_queue, clock):
    with open_queue(group_rate=Rate(1, per=3600)) as queue, open_queue() as other:
        fill(queue, "a")
        queue.mark_done(queue.claim())
        clock.advance(2)
        assert other.claim(group="nobody") is None
        assert queue.claim() is None
        clock.advance(3598)
        assert queue.claim().content == "a2"


def test_a_rate_that_is_taken_away_or_changed_holds_from_the_next_claim_on(open_queue, clock):
    with open_queue() as queue, open_queue(lease=9999) as other:
        queue.enqueue_many(range(20))
        queue.configure(rate=Rate(2, per=60))
        assert take(other) == [0, 1]
        queue.configure(rate=Rate(5, per=60))
        assert take(other) == [2, 3, 4]
        queue.configure(rate=Rate(1, per=60))
        clock.advance(59)
        assert take(other) == []
        clock.advance(1)
        assert take(other) == [5]
        queue.configure(rate=None)
        assert len(take(other, 3)) == 3


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("kind", ["rate", "group_rate"])
def test_a_clock_that_goes_back_a_day_holds_nobody_for_a_day(open_queue, clock, kind, reopened):
    settings = {kind: Rate(2, per=60), "group_limit": 9}
    queue = open_queue(**settings)
    fill(queue, "a")
    queue.mark_done_many(queue.claim_many(9))
    assert queue.counts()["done"] == 2
    clock.advance(-86400)
    if reopened:
        queue.close()
        queue = open_queue(**settings)
    taken = take(queue, 2)
    clock.advance(61)
    taken += take(queue, 2)
    assert taken[:2] == ["a3", "a4"]
    queue.close()


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("kind", ["rate", "group_rate"])
def test_a_clock_that_goes_back_a_little_lets_nobody_slip_through(open_queue, clock, kind, reopened):
    settings = {kind: Rate(2, per=60), "group_limit": 9}
    queue = open_queue(**settings)
    fill(queue, "a")
    queue.mark_done_many(queue.claim_many(9))
    assert queue.counts()["done"] == 2
    clock.advance(-5)
    if reopened:
        queue.close()
        queue = open_queue(**settings)
    assert take(queue) == []
    clock.advance(64)
    assert take(queue) == []
    clock.advance(1)
    assert take(queue, 2) == ["a3", "a4"]
    queue.close()


def test_a_paused_queue_uses_nothing_up(open_queue, clock):
    with open_queue(rate=Rate(1, per=60)) as queue:
        queue.enqueue_many(range(3))
        queue.pause()
        assert queue.claim() is None
        queue.resume()
        assert queue.claim().content == 0


def test_items_that_fall_due_wait_for_the_rate_and_keep_their_order(open_queue, clock):
    with open_queue(rate=Rate(1, per=60), lease=9999) as queue:
        queue.enqueue_many([NewItem("late", delay=10, priority=1), "a", "b"])
        assert take(queue) == ["a"]
        clock.advance(59)
        assert take(queue) == []
        clock.advance(1)
        assert take(queue) == ["late"]
