"""claim: the next item, taken by exactly one."""

import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pytest
from membox_queue import NewItem, Retry


def claimed(queue):
    """The contents of everything that is due, in the order of claims."""
    return [item.content for item in iter(queue.claim, None)]


@pytest.fixture
def waiting(queue):
    """Start a claim that waits in a thread; what it got is in the list after the join."""
    threads = []

    def waiting(**options):
        got = []
        thread = threading.Thread(target=lambda: got.append(queue.claim(**options)))
        threads.append(thread)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive(), "claim did not wait"
        return thread, got

    yield waiting
    queue.close()
    for thread in threads:
        thread.join(30)


def test_a_claimed_item_is_in_process_and_knows_its_claim(queue, clock):
    qid = queue.enqueue("x")
    clock.advance(5)
    item = queue.claim()
    assert (item.id, item.content, item.status, item.attempt, item.retries) == (qid, "x", "processing", 1, 0)
    assert item.started_at == clock.now
    assert item.lease_until == clock.now + timedelta(seconds=60)
    assert item.enqueued_at == clock.now - timedelta(seconds=5)
    assert str(os.getpid()) in item.worker
    assert not item.lost
    assert queue.get(qid).status == "processing"


def test_nothing_due_is_none(queue):
    assert queue.claim() is None
    queue.enqueue("x")
    queue.claim()
    assert queue.claim() is None


def test_an_item_cannot_be_changed_and_does_not_spill_its_content(queue):
    queue.enqueue("secret")
    item = queue.claim()
    with pytest.raises(AttributeError):
        item.status = "done"
    assert "secret" not in repr(item)
    assert str(item.id) in repr(item)


def test_higher_priority_comes_first_and_then_order_of_arrival(queue):
    for content, priority in [("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0)]:
        queue.enqueue(content, priority=priority)
    assert claimed(queue) == ["b", "d", "a", "e", "c"]


def test_a_delayed_item_joins_the_order_when_it_is_due(queue, clock):
    queue.enqueue("late", delay=10)
    queue.enqueue("timed", run_at=clock.now + timedelta(seconds=10))
    queue.enqueue("now")
    clock.advance(9.999)
    assert claimed(queue) == ["now"]
    clock.advance(0.001)
    queue.enqueue("new")
    queue.enqueue("urgent", priority=1)
    assert claimed(queue) == ["urgent", "late", "timed", "new"]


def test_an_item_that_fell_due_has_no_due_time_left(queue, clock):
    queue.enqueue("x", delay=1)
    clock.advance(1)
    assert queue.claim().run_at is None


def test_a_thousand_items_that_fall_due_together_all_come(queue, clock):
    queue.enqueue_many(NewItem(n, delay=1) for n in range(1001))
    clock.advance(1)
    assert claimed(queue) == list(range(1001))


def test_a_claim_lasts_for_its_lease_and_no_longer(queue, clock):
    qid = queue.enqueue("x")
    queue.claim()
    clock.advance(59.999)
    assert queue.claim() is None
    clock.advance(0.001)
    assert queue.claim().id == qid


def test_a_claim_may_ask_for_a_lease_of_its_own(queue, clock):
    queue.enqueue("x")
    item = queue.claim(lease=timedelta(seconds=5))
    assert item.lease_until == clock.now + timedelta(seconds=5)
    clock.advance(5)
    assert queue.claim().attempt == 2


def test_a_claim_may_name_its_holder(open_queue, clock):
    with open_queue(worker="everybody", max_retries=9) as queue:
        queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g"), "c", "d"])
        group = queue.claim_group(worker="anna")
        held = [*group, queue.claim(worker="bert"), *queue.claim_many(1)]
        assert [queue.get(item.id).worker for item in held] == ["anna", "anna", "bert", "everybody"]
        queue.mark_done(held[3])
        clock.advance(60)
        assert "bert" in queue.claim_many(9)[-1].error
        assert [queue.history(item.id)[0].worker for item in held] == ["anna", "anna", "bert", "everybody"]
        with pytest.raises(TypeError, match="worker"):
            queue.claim(worker=5)


def test_a_lost_lease_counts_and_says_who_vanished(open_queue, clock):
    with open_queue(worker="anna") as queue:
        queue.enqueue("x")
        assert queue.claim().worker == "anna"
        clock.advance(60)
        item = queue.claim()
        assert (item.retries, item.attempt) == (1, 2)
        assert "vanished" in item.error
        assert "anna" in item.error


@pytest.mark.parametrize("ceiling", [{}, {"retry": Retry(max=3, base=600)}])
def test_an_item_that_loses_every_worker_comes_back_at_once_and_then_rests_as_failed(open_queue, clock, ceiling):
    with open_queue(**ceiling) as queue:
        qid = queue.enqueue("poison")
        for attempt in (1, 2, 3):
            assert queue.claim().attempt == attempt
            clock.advance(60)
        assert queue.claim() is None
        item = queue.get(qid)
        assert (item.status, item.retries, item.finished_at) == ("failed", 3, clock.now)
        assert "vanished" in item.error


def test_many_expired_claims_all_come_back(queue, clock):
    queue.enqueue_many(range(50))
    assert len(queue.claim_many(50)) == 50
    clock.advance(60)
    assert sorted(claimed(queue)) == list(range(50))


def test_a_clock_that_was_put_back_does_not_hold_an_item_longer_than_its_lease(queue, clock):
    queue.enqueue("x")
    queue.claim()
    clock.advance(-86400)
    assert queue.claim().attempt == 2


def test_a_clock_that_was_put_back_holds_no_wait_longer_than_its_lease(queue, clock):
    queue.enqueue("x")
    queue.claim()
    clock.advance(-86400)
    assert queue.claim(wait=30).attempt == 2


def test_claiming_from_one_queue_leaves_the_expired_claims_of_another_alone(open_queue, clock):
    with open_queue() as queue, open_queue("mail") as mail:
        qid = queue.enqueue("x")
        queue.claim()
        clock.advance(60)
        assert mail.claim() is None
        assert queue.get(qid).status == "processing"


def test_waiting_ends_with_nothing_when_nothing_comes(queue, clock):
    assert queue.claim(wait=0.02) is None
    assert queue.claim(wait=timedelta(milliseconds=20)) is None


def test_a_wait_is_over_when_an_item_is_enqueued(queue, waiting):
    thread, got = waiting(wait=60)
    queue.enqueue("x")
    thread.join(30)
    assert got[0].content == "x"


@pytest.mark.parametrize("taken", [False, True])
def test_a_wait_is_over_when_a_delay_or_a_lease_runs_out(queue, waiting, clock, taken):
    queue.enqueue("x", delay=0 if taken else 60)
    assert (queue.claim() is not None) == taken
    thread, got = waiting(wait=60)
    clock.advance(60)
    thread.join(30)
    assert got[0].attempt == 1 + taken


def test_ctrl_c_ends_a_wait(queue):
    interrupt = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

    def wait():
        interrupt.start()
        queue.claim(wait=30)

    with pytest.raises(KeyboardInterrupt):
        wait()
    interrupt.join()
    queue.enqueue("x")
    assert queue.claim().content == "x"


def test_times_come_back_in_utc(queue):
    queue.enqueue("x")
    item = queue.claim()
    assert {item.enqueued_at.tzinfo, item.started_at.tzinfo, item.lease_until.tzinfo} == {UTC}
    assert abs(item.started_at - datetime.now(UTC)) < timedelta(hours=1)
