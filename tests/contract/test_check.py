"""check, running, queues and has_queue: how the file and its queues fare."""

import os

from programs import PROGRAMS


def test_space_that_removed_rows_left_is_told(queue):
    queue.enqueue_many("x" * 10_000 for _ in range(50))
    before = queue.check()["free_bytes"]
    queue.purge("pending")
    assert queue.check()["free_bytes"] > before


def test_a_claim_whose_lease_ran_out_is_stuck_until_somebody_claims(queue, clock):
    queue.enqueue_many(["a", "b"])
    queue.claim(lease=10)
    assert queue.check()["stuck"] == []
    clock.advance(11)
    assert queue.check()["stuck"] == [1]
    queue.claim()
    assert queue.check()["stuck"] == []


def test_a_claim_of_a_process_that_was_killed_is_stuck_at_once(queue, address, start):
    queue.enqueue("x")
    start(PROGRAMS / "die_with_an_item.py", address).wait()
    assert queue.check()["stuck"] == [1]
    assert queue.claim().attempt == 2
    assert queue.check()["stuck"] == []


def test_who_works_is_told(queue, clock):
    assert queue.stats()["worker"] is None
    queue.acquire_worker_lease()
    worker = queue.stats()["worker"]
    assert (worker["pid"], worker["heartbeat"]) == (os.getpid(), clock.now)
    assert worker["hostname"]


def test_all_queues_of_the_file(queue, open_queue):
    assert queue.queues() == {}
    queue.enqueue("x")
    with open_queue("emails") as emails:
        emails.enqueue_many(["a", "b"])
        emails.mark_done(emails.claim())
    queues = queue.queues()
    assert list(queues) == ["emails", "ingest"]
    assert (queues["emails"]["pending"], queues["emails"]["done"], queues["ingest"]) == (1, 1, queue.counts())


def test_what_is_being_worked_on_the_longest_first(queue, clock):
    queue.enqueue_many(["a", "b", "c"])
    assert queue.running() == []
    first = queue.claim()
    clock.advance(5)
    queue.claim()
    assert [(item.content, item.status) for item in queue.running()] == [("a", "processing"), ("b", "processing")]
    assert [item.id for item in queue.running(limit=1)] == [1]
    queue.mark_done(first)
    assert [item.id for item in queue.running()] == [2]
