"""Draining by membox's drop-in: one worker, every item recorded."""

import pytest
from membox_queue.errors import SimulatedCrash
from membox_queue.membox import (
    drain_queue,
)

from sqlite.membox_store import Agent, lease_of, put_lease


def test_draining_empties_the_queue_and_returns(store):
    agent = Agent(store)
    store.enqueue_ingest("one", project="p", source_path="/a.md", doc_date="2026-06-10")
    store.enqueue_ingest("two")
    assert drain_queue(agent) == {"done": 2, "failed": 0, "retried": 0}
    assert agent.calls == [("one", "/a.md", "p", "/a.md", "2026-06-10"), ("two", "", None, None, None)]
    assert store.pending_ingest_count() == 0
    assert store.sql("SELECT text FROM documents ORDER BY id") == [("one",), ("two",)]
    assert lease_of(store) is None


def test_draining_an_empty_queue_does_nothing(store):
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert lease_of(store) is None


def test_what_is_enqueued_during_a_drain_is_drained_too(store):
    def results(content):
        if content == "first":
            store.enqueue_ingest("second")
        return []

    store.enqueue_ingest("first")
    assert drain_queue(Agent(store, results))["done"] == 2


def test_one_items_exception_is_recorded_as_it_is_and_the_drain_goes_on(store):
    def results(content):
        if content == "bad":
            raise RuntimeError("extraction exploded")
        return [{}]

    for content in ("bad", "good"):
        store.enqueue_ingest(content)
    assert drain_queue(Agent(store, results)) == {"done": 1, "failed": 1, "retried": 0}
    [failure] = store.recent_failures()
    assert (failure["error"], failure["retries"]) == ("extraction exploded", 1)


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([{"error": "first"}, {"error": "second"}], "first"),
        ([{"error": ValueError("an exception")}], "an exception"),
        ([{"error": "first"}, {"triples": 3}], None),
        ([{"triples": 3}], None),
        ([], None),
    ],
)
def test_an_item_fails_when_all_of_its_chunks_failed(store, chunks, error):
    store.enqueue_ingest("a")
    stats = drain_queue(Agent(store, lambda content: chunks))
    assert stats == {"done": int(error is None), "failed": int(error is not None), "retried": 0}
    assert [failure["error"] for failure in store.recent_failures()] == ([error] if error else [])


def test_failed_items_are_retried_on_request_and_below_the_ceiling(store, make_store):
    def broken(content):
        raise RuntimeError("no model")

    store.enqueue_ingest("a")
    drain_queue(Agent(store, broken))
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert drain_queue(Agent(store, broken), retry_failed=True) == {"done": 0, "failed": 1, "retried": 1}
    assert drain_queue(Agent(store), retry_failed=True, max_retries=2) == {"done": 0, "failed": 0, "retried": 0}
    assert drain_queue(Agent(make_store()), retry_failed=True) == {"done": 1, "failed": 0, "retried": 1}
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 1, "failed": 0}


def test_a_drain_beside_a_live_worker_does_nothing(store):
    store.enqueue_ingest("a")
    store.claim_next_pending()
    store.mark_failed(1, "boom")
    store.enqueue_ingest("b")
    put_lease(store)
    assert drain_queue(Agent(store), retry_failed=True) == {"done": 0, "failed": 0, "retried": 0}
    assert store.queue_counts() == {"pending": 1, "processing": 0, "done": 0, "failed": 1}
    assert lease_of(store)["pid"] == 999_999


def test_a_second_drain_of_the_same_process_does_nothing_meanwhile(store, make_store):
    inner = []

    def results(content):
        other = make_store()
        inner.append(drain_queue(Agent(other)))
        return []

    store.enqueue_ingest("a")
    store.enqueue_ingest("b")
    assert drain_queue(Agent(store, results))["done"] == 2
    assert inner == [{"done": 0, "failed": 0, "retried": 0}] * 2


def test_a_drain_takes_up_what_a_dead_worker_left(store):
    store.enqueue_ingest("interrupted")
    store.claim_next_pending()
    put_lease(store, age=120)
    assert drain_queue(Agent(store)) == {"done": 1, "failed": 0, "retried": 0}
    assert store.pending_ingest_count() == 0


@pytest.mark.parametrize(("interrupt", "retries"), [(KeyboardInterrupt, 0), (SystemExit, 1)])
def test_an_interrupt_propagates_and_leaves_neither_lease_nor_claim(store, interrupt, retries):
    def results(content):
        raise interrupt

    for content in "ab":
        store.enqueue_ingest(content)
    with pytest.raises(interrupt):
        drain_queue(Agent(store, results))
    assert lease_of(store) is None
    assert store.queue_counts() == {"pending": 2, "processing": 0, "done": 0, "failed": 0}
    assert drain_queue(Agent(store)) == {"done": 2, "failed": 0, "retried": 0}
    assert store.sql("SELECT max(retries) FROM ingest_queue") == [(retries,)]


def refuse(self, *_):
    raise LookupError


@pytest.mark.parametrize(
    "error",
    [
        type("PanicException", (BaseException,), {}),
        type("Hostile", (Exception,), {"__str__": refuse, "__class__": property(refuse)}),
        GeneratorExit,
    ],
)
def test_whatever_else_is_raised_fails_the_item_and_the_drain_goes_on(store, error):
    def results(content):
        if content == "bad":
            raise error
        return []

    for content in ("bad", "good"):
        store.enqueue_ingest(content)
    assert drain_queue(Agent(store, results)) == {"done": 1, "failed": 1, "retried": 0}
    [failure] = store.recent_failures()
    assert (error.__name__ in failure["error"], failure["retries"]) == (True, 1)


def test_a_drain_that_crashes_is_recovered_by_the_next_once_its_lease_has_expired(store, membox_faults, fake_clock):
    store.enqueue_ingest("a")
    membox_faults.crash_before("finish")
    with pytest.raises(SimulatedCrash):
        drain_queue(Agent(store))
    assert store.queue_counts()["processing"] == 1
    assert store.worker_is_alive()
    fake_clock.advance(61)
    assert not store.worker_is_alive()
    assert drain_queue(Agent(store))["done"] == 1


def test_the_lease_is_live_while_an_item_is_handled_and_gone_with_the_last(store, make_store):
    seen = []

    def results(content):
        seen.append(make_store().worker_is_alive())
        return []

    store.enqueue_ingest("a")
    drain_queue(Agent(store, results))
    assert seen == [True]
    assert not store.worker_is_alive()
