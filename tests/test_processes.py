"""Many workers at once, workers that are killed, and handlers longer than their lease."""

import signal
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from membox_queue import DrainReport, Queue
from programs import PROGRAMS

ITEMS = 2000


@pytest.fixture
def full(queue):
    queue.enqueue_many(range(ITEMS))
    return queue


def every_item_once(queue, handled):
    assert Counter(handled) == Counter(range(1, ITEMS + 1))
    assert queue.counts()["done"] == ITEMS
    assert {item.attempt for item in queue.items(limit=ITEMS)} == {1}


def test_eight_processes_handle_every_item_exactly_once(full, path, start):
    processes = [start(PROGRAMS / "take_all.py", path) for _ in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    handled = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    every_item_once(full, [int(qid) for part in handled for qid in part])


@pytest.mark.parametrize("shared", [True, False])
def test_eight_threads_handle_every_item_exactly_once(full, path, shared):
    handled, barrier = [], threading.Barrier(8)

    def take_all():
        queue = full if shared else Queue(path)
        barrier.wait()
        while items := queue.claim_many(3):
            assert queue.mark_done_many(items) == len(items)
            handled.extend(item.id for item in items)
        if not shared:
            queue.close()

    threads = [threading.Thread(target=take_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    every_item_once(full, handled)


@pytest.fixture
def kill_in_mid_item(path, clock, start):
    """Let a worker claim the next item and kill it at its work; who it was."""

    def kill_in_mid_item():
        worker = start(PROGRAMS / "claim_and_hang.py", path, clock.ms)
        name = worker.stdout.readline().rstrip()
        worker.kill()
        worker.communicate()
        return name

    return kill_in_mid_item


def test_an_item_whose_worker_was_killed_comes_back_at_once_with_the_loss_counted(queue, clock, kill_in_mid_item):
    queue.enqueue("x")
    name = kill_in_mid_item()
    item = queue.claim()
    assert (item.retries, item.attempt) == (1, 2)
    assert "vanished" in item.error
    assert name in item.error
    assert queue.mark_done(item)


def test_an_item_that_kills_every_worker_rests_as_failed_and_says_so(queue, clock, kill_in_mid_item):
    queue.enqueue_many(["poison", "good"])
    for _ in range(3):
        assert kill_in_mid_item()
    assert queue.claim().content == "good"
    poison = queue.get(1)
    assert (poison.status, poison.retries, poison.attempt) == ("failed", 3, 3)
    assert "vanished" in poison.error


def test_a_killed_drain_leaves_neither_its_item_nor_its_lease_behind(queue, path, clock, start):
    queue.enqueue("x")
    worker = start(PROGRAMS / "drain_and_hang.py", path)
    assert worker.stdout.readline() == "handling\n"
    assert queue.drain(lambda item: None) == DrainReport(refused=True)
    worker.kill()
    worker.communicate()
    clock.advance(120)
    assert not queue.worker_is_alive()
    assert queue.drain(lambda item: item.retries) == DrainReport(done=1)
    assert queue.get(1).result == 1


def test_a_handler_that_holds_the_gil_for_several_leases_keeps_its_item(queue, path, start, until):
    queue.enqueue("x")
    worker = start(PROGRAMS / "drain_with_the_gil_held.py", path)
    assert worker.stdout.readline() == "handling\n"
    first = queue.get(1).lease_until
    until(lambda: queue.get(1).lease_until > first + timedelta(seconds=0.9))
    assert worker.communicate("x", timeout=30)[0] == "1\n"
    item = queue.get(1)
    assert (item.status, item.attempt, item.retries, item.result) == ("done", 1, 0, False)


def test_enqueuers_that_trust_the_worker_lease_leave_nothing_behind(queue, path, start):
    processes = [start(PROGRAMS / "enqueue_and_drain.py", path) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert (queue.pending(), queue.counts()["done"]) == (0, 400)
    assert not queue.worker_is_alive()


def is_overdue(queue):
    return queue.get(1).lease_until < datetime.now(UTC) - timedelta(seconds=0.2)


def test_a_live_handler_keeps_its_item_though_another_writer_outlasts_its_lease(queue, path, start, until, writer):
    queue.enqueue("x")
    worker = start(PROGRAMS / "handle_for_long.py", path)
    assert worker.stdout.readline() == "handling\n"
    claimers = [start(PROGRAMS / "claim_when_told.py", path) for _ in range(3)]
    assert [claimer.stdout.readline() for claimer in claimers] == ["ready\n"] * 3
    close_if_idle = writer()
    until(lambda: is_overdue(queue))
    for claimer in claimers:
        claimer.stdin.write("\n")
        claimer.stdin.flush()
        assert claimer.stdout.readline() == "claims\n"
    close_if_idle()
    assert [claimer.stdout.readline() for claimer in claimers] == ["None\n"] * 3
    assert worker.communicate("\n", timeout=30)[0] == "1\n"
    item = queue.get(1)
    assert (item.status, item.attempt, item.retries, item.result) == ("done", 1, 0, False)


def test_a_stopped_process_loses_its_item_though_it_waited_to_renew_it(queue, path, start, until, writer):
    queue.enqueue("x")
    worker = start(PROGRAMS / "handle_for_long.py", path)
    assert worker.stdout.readline() == "handling\n"
    close_if_idle = writer()
    until(lambda: is_overdue(queue))
    worker.send_signal(signal.SIGSTOP)
    close_if_idle()
    assert queue.claim().attempt == 2
