"""Workers that die, hang or only look dead: the system's locks tell the first, leases bound the second."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from membox_queue import NewItem, Queue
from programs import PROGRAMS

LEASE = 3600
"""So long that nothing in here can be the work of a lease."""


class Holder:
    """A process that holds something; it does what it is told in a line."""

    def __init__(self, process):
        self.process = process
        self.child = None
        while (line := process.stdout.readline()) != "held\n":
            assert line.startswith("child "), line
            self.child = int(line.split()[1])

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def asked(self, expression):
        self.process.stdin.write(f"{expression}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip()


@pytest.fixture
def holder(path, start):
    held = []

    def holder(how="item", lease=LEASE):
        held.append(Holder(start(PROGRAMS / "hold.py", path, how, lease)))
        return held[-1]

    yield holder
    for one in held:
        if one.child:
            os.kill(one.child, signal.SIGKILL)


@pytest.mark.parametrize("how", ["item", "with", "closed", "dropped", "closed and dropped", "drain", "work"])
def test_an_item_of_a_killed_worker_is_claimed_at_once_and_the_loss_counts(queue, holder, how):
    queue.enqueue("x")
    worker = holder(how)
    assert queue.claim() is None
    worker.kill()
    item = queue.claim()
    assert item.retries == 1
    assert "vanished" in item.error
    assert str(worker.process.pid) in item.error
    assert queue.history(1)[-1].ending == "lost"


def test_a_waiting_claim_notices_a_killed_worker_well_before_the_lease_ends(queue, holder):
    queue.enqueue("x")
    worker = holder()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.claim, wait=60)
        time.sleep(0.05)
        assert not waiting.done()
        killed = time.monotonic()
        worker.kill()
        item = waiting.result(60)
        took = time.monotonic() - killed
    assert item.retries == 1
    # The aim is a second.
    assert took < 5


def test_a_working_loop_notices_a_killed_worker(queue, holder, until):
    queue.enqueue("x")
    worker = holder()
    with ThreadPoolExecutor(1) as pool:
        loop = pool.submit(queue.work, lambda item: item.retries, limit=1)
        worker.kill()
        assert loop.result(60).done == 1
    assert queue.get(1).result == 1


def test_a_drain_takes_what_a_killed_worker_left(queue, holder):
    queue.enqueue_many(["x", "y"])
    holder().kill()
    assert queue.drain(lambda item: item.retries).done == 2
    assert [item.result for item in queue.items()] == [1, 0]


def test_a_claim_that_finds_other_items_looks_for_the_dead_too(queue, holder, until):
    queue.enqueue_many(["held", *range(50)])
    holder().kill()
    # Not at every claim, but long before the lease ends.
    until(lambda: queue.release(queue.claim()) and queue.get(1).status == "pending")


def test_a_killed_worker_is_no_live_worker_from_that_moment_on(queue, holder):
    worker = holder("lease")
    assert queue.worker_is_alive()
    assert not queue.acquire_worker_lease()
    worker.kill()
    assert not queue.worker_is_alive()
    assert queue.acquire_worker_lease()


def test_a_killed_drain_is_no_live_worker_from_that_moment_on(queue, holder):
    queue.enqueue("x")
    worker = holder("drain")
    assert queue.worker_is_alive()
    worker.kill()
    assert not queue.worker_is_alive()
    assert queue.stats()["worker_is_alive"] is False


def test_a_lock_of_a_killed_process_is_free(queue, holder):
    worker = holder("lock")
    lock = queue.lock("nightly", ttl=LEASE)
    assert not lock.acquire()
    worker.kill()
    assert lock.acquire()


def test_everything_that_a_killed_worker_held_comes_back(queue, holder):
    queue.enqueue_many(range(100))
    holder("many").kill()
    items = [queue.claim() for _ in range(100)]
    assert sorted(item.content for item in items) == list(range(100))
    assert {item.retries for item in items} == {1}
    assert queue.claim() is None


def test_items_in_two_queues_come_back_to_each(path, queue, holder):
    with Queue(path, "other") as other:
        queue.enqueue("a")
        other.enqueue("b")
        holder("two queues").kill()
        assert (queue.claim().content, queue.claim()) == ("a", None)
        assert (other.claim().content, other.claim()) == ("b", None)


def test_a_group_that_a_dead_worker_blocked_goes_on(queue, holder):
    queue.enqueue_many(NewItem(number, group="g", max_retries=1) for number in range(3))
    worker = holder()
    assert queue.claim() is None
    worker.kill()
    # Its one chance is gone: the first rests as failed, and frees the group.
    assert queue.claim().content == 1
    assert queue.get(1).status == "failed"


def test_a_batch_of_a_dead_worker_comes_back_in_order_and_only_its_first_item_pays(queue, holder):
    queue.enqueue_many(NewItem(number, group="g") for number in range(3))
    holder("batch").kill()
    again = queue.claim_group()
    assert [item.content for item in again] == [0, 1, 2]
    assert [item.retries for item in again] == [1, 0, 0]


def test_an_item_that_kills_its_workers_rests_as_failed(queue, holder):
    queue.enqueue("poison")
    for _ in range(3):
        holder().kill()
    assert queue.claim() is None
    assert (queue.get(1).status, queue.get(1).retries) == ("failed", 3)


@pytest.mark.parametrize("how", ["fork", "multiprocessing", "subprocess"])
def test_children_do_not_keep_a_dead_parent_alive(queue, holder, how):
    queue.enqueue("x")
    worker = holder(how)
    os.kill(worker.child, 0)
    assert queue.claim() is None
    worker.kill()
    os.kill(worker.child, 0)
    assert queue.claim().retries == 1


def test_a_child_that_exits_does_not_make_its_living_parent_look_dead(queue, holder, until):
    queue.enqueue("x")
    worker = holder("fork")
    os.kill(worker.child, signal.SIGKILL)
    assert worker.asked("os.waitpid(pid, 0)[0] == pid") == "True"
    worker.child = None
    assert queue.claim() is None
    assert worker.asked("queue.mark_done(item)") == "True"


@pytest.mark.parametrize("how", ["item", "closed and dropped"])
def test_the_claims_of_a_living_process_are_not_taken_before_their_lease_ends(queue, holder, how):
    queue.enqueue("x")
    holder(how)
    assert queue.claim() is None
    assert queue.claim(wait=0.6) is None
    assert (queue.get(1).status, queue.get(1).retries) == ("processing", 0)


@pytest.mark.parametrize("how", ["closed", "closed and dropped"])
def test_the_claims_of_this_process_are_not_taken_before_their_lease_ends(path, queue, start, clock, how):
    queue.enqueue("x")
    mine = Queue(path)
    item = mine.claim()
    if "closed" in how:
        mine.close()
    if "dropped" in how:
        del item
    look = "import sys; from membox_queue import Queue; print(Queue(sys.argv[1]).claim(wait=0.6))"
    assert start(look, path).communicate(timeout=30)[0] == "None\n"
    clock.advance(60)
    assert queue.claim().retries == 1
    mine.close()


def test_a_process_that_opens_and_closes_many_queues_keeps_its_claims(queue, path, holder):
    queue.enqueue("x")
    worker = holder()
    assert (
        worker.asked("[Queue(address, 'q%d' % n).close() for n in range(20)] and queue.get(1).status") == "processing"
    )
    assert queue.claim() is None
    assert worker.asked("queue.mark_done(item)") == "True"


def test_a_stopped_worker_is_bounded_by_its_lease_and_its_late_calls_are_refused(queue, holder):
    queue.enqueue("x")
    worker = holder("with", lease=0.5)
    os.kill(worker.process.pid, signal.SIGSTOP)
    # It lives, so only its lease can end the claim.
    item = queue.claim(wait=30)
    assert (item.retries, item.attempt) == (1, 2)
    os.kill(worker.process.pid, signal.SIGCONT)
    assert worker.asked("queue.mark_done(item, result='late')") == "False"
    assert worker.asked("queue.mark_failed(item, 'late')") == "False"
    assert worker.asked("queue.extend(item, 60)") == "False"
    assert worker.asked("queue.release(item)") == "False"
    assert worker.asked("item.set_progress(1.0)") == "False"
    assert worker.asked("item.lost") == "True"
    after = queue.get(1)
    assert (after.status, after.attempt, after.error) == ("processing", 2, item.error)
    assert queue.mark_done(item, result="mine")
    assert worker.asked("queue.mark_done(item, result='late')") == "False"
    assert queue.get(1).result == "mine"


def test_a_stopped_worker_holds_its_lease_until_it_ends_and_cannot_take_it_back(queue, holder, until):
    worker = holder("lease", lease=0.5)
    os.kill(worker.process.pid, signal.SIGSTOP)
    assert queue.worker_is_alive()
    until(queue.acquire_worker_lease)
    os.kill(worker.process.pid, signal.SIGCONT)
    assert worker.asked("queue.refresh_worker_lease()") == "False"
    assert worker.asked("queue.release_worker_lease()") == "False"
    assert queue.refresh_worker_lease()


def test_a_stopped_drain_reports_its_item_as_lost(queue, path, start):
    queue.enqueue("x")
    worker = start(PROGRAMS / "drain_slowly.py", path)
    assert worker.stdout.readline() == "handling\n"
    os.kill(worker.pid, signal.SIGSTOP)
    item = queue.claim(wait=30)
    os.kill(worker.pid, signal.SIGCONT)
    assert worker.communicate("\n", timeout=30)[0] == "DrainReport(lost=1)\n"
    assert queue.mark_done(item)


def test_many_die_while_many_wait(queue, holder):
    queue.enqueue_many(range(4))
    workers = [holder() for _ in range(4)]
    got, threads = [], []
    for _ in range(4):
        threads.append(threading.Thread(target=lambda: got.append(queue.claim(wait=60))))
        threads[-1].start()
    for worker in workers:
        worker.kill()
    for thread in threads:
        thread.join(60)
    assert sorted((item.content, item.retries) for item in got) == [(number, 1) for number in range(4)]
