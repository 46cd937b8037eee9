"""Retention: finished items go after a while, beside normal work; nothing else does."""

import pickle
import threading
from datetime import timedelta

import pytest
from membox_queue import BY_CONTENT, DrainReport, NewItem, Retry

TEND_EVERY = 10


def contents(queue):
    return [item.content for item in queue.items(limit=1000)]


def finish(queue, *names, clock=None, **options):
    """Enqueue and finish items one by one, a second after each other if there is a clock."""
    for name in names:
        queue.enqueue(name, **options)
        assert queue.mark_done(queue.claim())
        if clock is not None:
            clock.advance(1)


def test_everything_is_kept_for_ever_unless_told(queue, clock):
    queue.enqueue_many(["done", "failed", "cancelled"])
    queue.mark_done(queue.claim())
    queue.mark_failed(queue.claim(), "no")
    queue.cancel(3)
    clock.advance(86400 * 365 * 50)
    queue.claim()
    queue.tend()
    assert contents(queue) == ["done", "failed", "cancelled"]


def test_done_items_go_after_their_time(open_queue, clock):
    with open_queue(keep_for=60) as queue:
        finish(queue, "old")
        clock.advance(30)
        finish(queue, "young")
        clock.advance(30)
        queue.tend()
        assert contents(queue) == ["old", "young"]
        clock.advance(0.001)
        queue.tend()
        assert contents(queue) == ["young"]
        assert queue.counts()["done"] == 1


def test_the_latest_done_items_are_kept(open_queue, clock):
    with open_queue(keep_last=2) as queue:
        finish(queue, "a", "b", "c", "d", clock=clock)
        queue.tend()
        assert contents(queue) == ["c", "d"]


def test_the_latest_are_those_that_ended_last(open_queue, clock):
    with open_queue(keep_last=1) as queue:
        queue.enqueue_many(["first", "second"])
        first, second = queue.claim_many(2)
        queue.mark_done(second)
        clock.advance(1)
        queue.mark_done(first)
        queue.tend()
        assert contents(queue) == ["first"]


def test_nothing_need_be_kept(open_queue, clock):
    with open_queue(keep_last=0, keep_failed_for=0) as queue:
        queue.enqueue_many(["done", "failed", "waiting"])
        queue.mark_done(queue.claim())
        queue.mark_failed(queue.claim(), "no")
        clock.advance(0.001)
        queue.tend()
        assert contents(queue) == ["waiting"]


def test_who_keeps_none_finds_none_from_the_moment_an_item_is_done(open_queue, clock):
    with open_queue(keep_last=0) as queue:
        queue.enqueue("reserved", key="k", key_ttl=3600)
        for _ in range(3):
            queue.enqueue("x")
        while item := queue.claim():
            queue.mark_done(item)
            assert queue.counts()["done"] == 1
        assert queue.get(key="k").status == "done"


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_idle_loop_that_keeps_none_has_removed_what_it_has_done(open_queue, background, clock, until, concurrency):
    with open_queue(keep_last=0) as queue:
        background(queue.work, lambda item: None, concurrency=concurrency)
        for _ in range(3):
            queue.enqueue_many(["x"] * 5)
            until(lambda: sum(queue.counts().values()) == 0)


def test_each_limit_holds_by_itself(open_queue, clock):
    with open_queue(keep_for=60, keep_last=2) as queue:
        finish(queue, "a", "b", "c", clock=clock)
        queue.tend()
        assert contents(queue) == ["b", "c"]
        clock.advance(59)
        queue.tend()
        assert contents(queue) == ["c"]


def test_failed_and_cancelled_items_have_a_time_of_their_own(open_queue, clock):
    with open_queue(keep_for=10, keep_failed_for=60) as queue:
        queue.enqueue_many(["done", "failed", "cancelled"])
        queue.mark_done(queue.claim())
        queue.mark_failed(queue.claim(), "no")
        queue.cancel(3)
        clock.advance(59)
        queue.tend()
        assert contents(queue) == ["failed", "cancelled"]
        clock.advance(1.001)
        queue.tend()
        assert contents(queue) == []


def test_limits_of_done_items_leave_failed_ones_alone(open_queue, clock):
    with open_queue(keep_for=0, keep_last=0) as queue:
        queue.enqueue_many(["failed", "cancelled"])
        queue.mark_failed(queue.claim(), "no")
        queue.cancel(2)
        clock.advance(86400)
        queue.tend()
        assert contents(queue) == ["failed", "cancelled"]


def test_unfinished_items_stay_however_old(open_queue, clock):
    with open_queue(keep_for=0, keep_last=0, keep_failed_for=0, retry=Retry(max=9, base=1e6, jitter=0)) as queue:
        queue.enqueue_many(
            ["retried", "held", "stopping", NewItem("delayed", delay=1e6), NewItem("grouped", group="g")]
        )
        queue.mark_failed(queue.claim(), "no")
        queue.claim_many(2, lease=1e6)
        queue.cancel(3)
        clock.advance(5e5)
        queue.tend()
        assert contents(queue) == ["retried", "held", "stopping", "delayed", "grouped"]


def test_a_failed_item_that_was_brought_back_in_time_stays(open_queue, clock):
    with open_queue(keep_failed_for=60) as queue:
        queue.enqueue("x")
        queue.mark_failed(queue.claim(), "no")
        clock.advance(59)
        assert queue.retry_failed() == 1
        clock.advance(3600)
        queue.tend()
        assert contents(queue) == ["x"]


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled"])
def test_an_item_stays_while_its_key_is_reserved(open_queue, clock, ending):
    with open_queue(keep_for=0, keep_last=0, keep_failed_for=0) as queue:
        id = queue.enqueue("x", key="k", key_ttl=3600)
        if ending == "cancelled":
            queue.cancel(id)
        elif ending == "failed":
            queue.mark_failed(queue.claim(), "no")
        else:
            queue.mark_done(queue.claim())
        clock.advance(3599)
        queue.tend()
        assert queue.enqueue("x", key="k", key_ttl=3600) == id
        clock.advance(1)
        queue.tend()
        assert queue.get(id) is None


def test_a_reserved_key_does_not_cost_a_later_item_its_place(open_queue, clock):
    with open_queue(keep_last=2) as queue:
        finish(queue, "reserved", key="k", key_ttl=86400, clock=clock)
        finish(queue, "a", "b", "c", clock=clock)
        queue.tend()
        assert contents(queue) == ["reserved", "b", "c"]


def test_many_reserved_keys_hold_up_neither_limit(open_queue, clock):
    with open_queue(keep_last=2, keep_for=60) as queue:
        finish(queue, *range(150), key=BY_CONTENT, key_ttl=86400)
        clock.advance(1)
        finish(queue, *range(200, 300))
        queue.tend()
        assert contents(queue) == [*range(150), 298, 299]
        clock.advance(61)
        queue.tend()
        assert contents(queue) == list(range(150))


def test_keys_that_are_free_again_are_looked_at_again(open_queue, clock):
    with open_queue(keep_for=60) as queue:
        finish(queue, *range(150), key=BY_CONTENT, key_ttl=120)
        clock.advance(61 + TEND_EVERY)
        queue.claim()
        clock.advance(120)
        queue.tend()
        assert contents(queue) == []


@pytest.mark.parametrize("verb", ["claim", "mark_done", "mark_failed", "drain"])
def test_items_go_beside_normal_work(open_queue, clock, verb):
    with open_queue(keep_for=60) as queue:
        finish(queue, "old")
        queue.enqueue("next")
        held = queue.claim(lease=9999) if verb.startswith("mark") else None
        clock.advance(61 + TEND_EVERY)
        if verb == "claim":
            queue.claim()
        elif verb == "mark_done":
            queue.mark_done(held)
        elif verb == "mark_failed":
            queue.mark_failed(held, "no")
        else:
            assert queue.drain(lambda item: None) == DrainReport(done=1)
        assert contents(queue) == ["next"]


def test_much_is_removed_in_small_steps(open_queue, clock):
    with open_queue(keep_for=60) as queue:
        queue.enqueue_many(range(300))
        queue.mark_done_many(queue.claim_many(300))
        clock.advance(61 + TEND_EVERY)
        left = []
        while not left or left[-1] > 0:
            queue.claim()
            left.append(queue.counts()["done"])
            assert len(left) < 10
        assert left == sorted(left, reverse=True)
        assert len(left) > 3


def test_tend_removes_everything_that_is_due(open_queue, clock):
    with open_queue(keep_last=10) as queue:
        queue.enqueue_many(range(500))
        queue.mark_done_many(queue.claim_many(500))
        queue.tend()
        assert contents(queue) == list(range(490, 500))


def test_each_queue_of_a_file_keeps_its_own(open_queue, clock):
    with open_queue("short", keep_last=0) as short, open_queue("long") as long:
        finish(short, "a")
        finish(long, "b")
        short.tend()
        long.tend()
        assert (contents(short), contents(long)) == ([], ["b"])


def test_what_is_configured_holds_for_all_who_have_the_file_open(open_queue, clock):
    with open_queue() as one, open_queue() as two, pickle.loads(pickle.dumps(one)) as three:
        finish(one, "a", "b", clock=clock)
        two.configure(keep_last=1)
        clock.advance(TEND_EVERY)
        three.claim()
        assert contents(one) == ["b"]
        two.configure(keep_last=None)
        finish(one, "c", clock=clock)
        clock.advance(TEND_EVERY)
        one.claim()
        one.tend()
        assert contents(one) == ["b", "c"]


def test_a_queue_opened_later_goes_on_removing(open_queue, clock):
    with open_queue() as queue:
        queue.configure(keep_for=60)
        finish(queue, "a")
    clock.advance(61)
    with open_queue() as queue:
        queue.claim()
        assert contents(queue) == []


def test_a_paused_queue_is_tended_too(open_queue, clock):
    with open_queue(keep_for=60) as queue:
        finish(queue, "a")
        queue.pause()
        clock.advance(61 + TEND_EVERY)
        queue.claim()
        assert contents(queue) == []


def test_a_clock_that_goes_back_a_day_removes_nothing_early(open_queue, clock):
    with open_queue(keep_for=60) as queue:
        finish(queue, "a")
        clock.advance(-86400)
        finish(queue, "b")
        queue.tend()
        assert contents(queue) == ["a", "b"]
        clock.advance(61)
        queue.claim()
        assert contents(queue) == ["a"]
        clock.advance(86400)
        queue.claim()
        assert contents(queue) == []


def test_an_id_is_not_used_again(open_queue, clock):
    with open_queue(keep_last=0) as queue:
        finish(queue, "a", "b")
        queue.tend()
        assert queue.enqueue("c") == 3


def test_somebody_who_waits_for_an_item_that_is_removed_is_told(open_queue, clock):
    with open_queue(keep_last=0) as queue:
        finish(queue, "a")
        queue.tend()
        assert queue.wait(1, timeout=30) is None
        with pytest.raises(ValueError, match="no item 2"):
            queue.wait(2, timeout=1)


def test_many_threads_tend_at_once(open_queue, clock):
    with open_queue(durability="normal", keep_last=5) as queue:
        queue.enqueue_many(range(400))

        def work():
            while item := queue.claim():
                queue.mark_done(item)
                queue.tend()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert queue.counts()["done"] == 5
        assert len(contents(queue)) == 5


# Without the content


def test_the_content_of_a_done_item_is_dropped(open_queue):
    with open_queue(keep_content=False) as queue:
        queue.enqueue({"a": 1}, project="p", headers={"h": 1}, key="k", group="g")
        item = queue.claim()
        queue.mark_done(item, result=[1])
        assert item.content == {"a": 1}
        read = queue.get(1)
        assert (read.status, read.content, read.result) == ("done", None, [1])
        assert (read.project, read.headers, read.key, read.group) == ("p", {"h": 1}, "k", "g")
        assert [other.content for other in queue.items("done")] == [None]


def test_failed_cancelled_and_released_items_keep_their_content(open_queue):
    with open_queue(keep_content=False) as queue:
        queue.enqueue_many(["failed", "cancelled", "released"])
        queue.mark_failed(queue.claim(), "no")
        queue.cancel(2)
        queue.release(queue.claim())
        assert contents(queue) == ["failed", "cancelled", "released"]
        queue.retry(1)
        assert queue.claim().content == "failed"


def test_dropped_content_cannot_be_replayed(open_queue):
    with open_queue(keep_content=False) as queue:
        finish(queue, "x")
        assert queue.replay(1) is None
        assert queue.counts()["pending"] == 0
        queue.configure(keep_content=True)
        finish(queue, "y")
        assert queue.get(queue.replay(2)).content == "y"


def test_an_empty_content_is_not_a_dropped_one(queue):
    finish(queue, "")
    assert queue.get(1).content == ""
    assert queue.get(queue.replay(1)).content == ""


def test_a_key_made_from_the_content_outlives_it(open_queue, clock):
    with open_queue(keep_content=False) as queue:
        finish(queue, "x", key="k", key_ttl=60)
        assert queue.enqueue("x", key="k", key_ttl=60) == 1


def test_keep_for_may_be_a_timedelta(open_queue):
    with open_queue(keep_for=timedelta(days=2), keep_failed_for=timedelta(hours=1)) as queue:
        assert (queue.options["keep_for"], queue.options["keep_failed_for"]) == (172800, 3600)


def test_tend_records_the_end_of_a_last_attempt_that_was_lost(queue, clock):
    queue.enqueue_many([NewItem("x", max_retries=1)] * 40)
    queue.claim_many(40)
    clock.advance(61)
    assert len(queue.stats()["stuck"]) > 0
    queue.tend()
    assert (queue.counts()["failed"], queue.stats()["stuck"]) == (40, [])


@pytest.mark.parametrize("verb", ["mark_done_many", "drain", "with"])
def test_the_content_goes_whichever_way_an_item_is_done(open_queue, engine, verb):
    with open_queue(keep_content=False) as queue:
        queue.enqueue("secret")
        if verb == "mark_done_many":
            queue.mark_done_many(queue.claim_many(1))
        elif verb == "drain":
            queue.drain(lambda item: None)
        else:
            with queue.claim():
                pass
        assert queue.get(1).content is None
        assert engine.rows("content") == [[""]]
