"""Waking up: a wait hears of what other processes commit, and of what happens by itself, and costs little meanwhile."""

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from membox_queue import Queue, Rate, Retry
from programs import PROGRAMS


class Waiter:
    """Another process that waits for an item."""

    def __init__(self, process):
        self.process = process
        assert process.stdout.readline() == "ready\n"

    def begin(self, seconds=60):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        stat = Path(f"/proc/{self.process.pid}/stat")
        deadline = time.monotonic() + 30
        # It has read the line and sleeps again: it waits for work now.
        for _ in range(3):
            while stat.read_text().rpartition(")")[2].split()[0] != "S":
                assert time.monotonic() < deadline
            time.sleep(0.01)

    def got(self):
        """What it got, and when."""
        content, retries, when, used = self.process.stdout.readline().split()
        self.retries, self.used = retries, float(used)
        return content, float(when)


@pytest.fixture
def waiter(path, queue, start):
    return lambda how="claim": Waiter(start(PROGRAMS / "wait_for_items.py", path, how))


@pytest.mark.parametrize("how", ["claim", "work"])
def test_a_wait_gets_what_another_process_enqueues_before_it_would_look_by_itself(queue, waiter, how):
    waiting = waiter(how)
    took = []
    for number in range(10):
        waiting.begin()
        queue.enqueue(number)
        committed = time.time()
        content, when = waiting.got()
        assert content == str(number)
        took.append(when - committed)
    # The aim is a millisecond or two; the poll that misses no hint comes every 500.
    assert sorted(took)[5] < 0.1


def test_a_wait_gets_what_plain_sql_of_another_process_inserts(path, waiter, sql):
    waiting = waiter()
    took = []
    for _ in range(3):
        waiting.begin()
        sql(path, "INSERT INTO ingest_queue (content) VALUES ('x')")
        done = time.time()
        content, when = waiting.got()
        assert content == "x"
        took.append(when - done)
    assert min(took) < 0.1


def test_a_wait_gets_what_was_enqueued_in_the_users_own_transaction_once_it_commits(path, queue, waiter):
    waiting = waiter()
    connection = sqlite3.connect(path, isolation_level=None)
    took = []
    for _ in range(3):
        waiting.begin()
        connection.execute("BEGIN")
        queue.enqueue("x", connection=connection)
        connection.execute("COMMIT")
        committed = time.time()
        content, when = waiting.got()
        assert content == "x"
        took.append(when - committed)
    connection.close()
    assert min(took) < 0.1


def test_a_wait_of_this_process_gets_what_the_users_own_transaction_commits(path, queue, waiting):
    connection = sqlite3.connect(path, isolation_level=None)
    future = waiting()
    connection.execute("BEGIN")
    queue.enqueue("x", connection=connection)
    assert not future.done()
    connection.execute("COMMIT")
    assert future.result(30).content == "x"
    connection.close()


def test_a_rolled_back_enqueue_wakes_nobody_for_nothing(path, queue, waiter):
    waiting = waiter()
    waiting.begin(0.3)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    queue.enqueue("x", connection=connection)
    connection.execute("ROLLBACK")
    connection.close()
    assert waiting.got()[0] == "None"


def test_a_wait_gets_a_delayed_item_at_its_due_time(queue, waiter):
    waiting = waiter()
    late = []
    for _ in range(3):
        waiting.begin()
        queue.enqueue("x", delay=0.3)
        due = time.time() + 0.3
        content, when = waiting.got()
        assert content == "x"
        late.append(when - due)
    assert all(moment > -0.05 for moment in late)
    assert min(late) < 0.1


def test_a_wait_gets_an_item_when_its_lease_ends(queue, waiter):
    late = []
    for _ in range(2):
        waiting = waiter()
        queue.enqueue("x")
        item = queue.claim(lease=0.7)
        waiting.begin()
        content, when = waiting.got()
        assert (content, waiting.retries) == ("x", "1")
        late.append(when - item.lease_until.timestamp())
    assert all(moment > -0.05 for moment in late)
    assert min(late) < 0.2


def test_a_wait_gets_a_retry_at_its_time(path, start, waiter):
    waiting = waiter()
    with Queue(path, retry=Retry(base=0.2, jitter=0)) as queue:
        queue.enqueue("x")
        queue.mark_failed(queue.claim(), "no")
        waiting.begin()
        assert waiting.got()[0] == "x"
        assert waiting.retries == "1"


def test_a_wait_hears_that_a_pause_is_over(queue, waiter):
    waiting = waiter()
    took = []
    for _ in range(3):
        queue.pause()
        queue.enqueue("x")
        waiting.begin()
        queue.resume()
        resumed = time.time()
        content, when = waiting.got()
        assert content == "x"
        took.append(when - resumed)
    assert min(took) < 0.2


def test_a_wait_hears_of_what_is_configured_meanwhile(queue, waiter):
    queue.configure(rate=Rate(1, 3600))
    queue.enqueue_many(["first", "second"])
    queue.mark_done(queue.claim())
    waiting = waiter()
    waiting.begin()
    queue.configure(rate=None)
    assert waiting.got()[0] == "second"


def test_a_wait_hears_of_a_released_group(queue, waiter):
    queue.enqueue("one", group="g")
    queue.enqueue("two", group="g")
    first = queue.claim()
    waiting = waiter()
    waiting.begin()
    queue.mark_done(first)
    done = time.time()
    content, when = waiting.got()
    assert content == "two"
    assert when - done < 5


@pytest.mark.parametrize("verb", ["run_now", "run_later", "retry", "release", "replay"])
def test_a_wait_hears_of_every_way_back_to_pending(queue, waiter, verb):
    is_delayed = verb in ("run_now", "run_later")
    queue.enqueue("x", delay=3600 if is_delayed else 0)
    item = None if is_delayed else queue.claim()
    if verb in ("retry", "replay"):
        queue.mark_failed(item, "no")
    waiting = waiter()
    waiting.begin()
    getattr(queue, verb)(item if verb == "release" else 1, *[0.2] * (verb == "run_later"))
    assert waiting.got()[0] == "x"


@pytest.fixture
def waiting(queue):
    """A wait in a thread of this process."""
    with ThreadPoolExecutor(2) as pool:

        def waiting(**options):
            future = pool.submit(queue.claim, **{"wait": 60, **options})
            time.sleep(0.05)
            assert not future.done()
            return future

        yield waiting
        queue.close()


def test_a_clock_that_is_moved_wakes(queue, waiting, clock):
    took = []
    for _ in range(3):
        queue.enqueue("x", delay=3600)
        future = waiting()
        moved = time.monotonic()
        clock.advance(3600)
        item = future.result(30)
        took.append(time.monotonic() - moved)
        assert queue.mark_done(item)
    # The poll would have noticed after 450 ms.
    assert min(took) < 0.2


def test_a_wait_hears_of_a_schedule_made_meanwhile(queue, waiting, clock):
    future = waiting()
    queue.schedule("tick", "x", every=60)
    clock.advance(60)
    assert future.result(30).content == "x"


def test_a_log_that_was_folded_away_and_begun_anew_is_still_watched(path, queue, waiter, sql):
    waiting = waiter()
    for number in range(3):
        waiting.begin()
        queue.tend()
        sql(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        queue.enqueue(number)
        committed = time.time()
        content, when = waiting.got()
        assert content == str(number)
        assert when - committed < 5


@pytest.mark.parametrize("how", ["claim", "wait", "work", "lock", "linger"])
def test_an_idle_wait_costs_next_to_nothing(path, start, how):
    program = PROGRAMS / "idle_wait.py"
    # The aim is a millisecond per second; a loop that spins takes a whole core.
    assert float(start(program, path, how).communicate(timeout=30)[0]) < 0.05


def test_a_wait_beside_a_busy_other_queue_costs_little_and_still_hears(path, queue, waiter):
    waiting = waiter()
    with Queue(path, "busy", durability="normal") as busy:
        waiting.begin()
        began = time.monotonic()
        count = 0
        while time.monotonic() - began < 0.5:
            busy.enqueue(count)
            count += 1
            time.sleep(0.01)
        queue.enqueue("x")
        assert waiting.got()[0] == "x"
        assert waiting.used < 0.5 * (time.monotonic() - began)


def test_no_descriptor_of_the_database_is_opened_to_watch_it(path, queue, waiting):
    def descriptors():
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{name}"))
            except FileNotFoundError:
                continue
        return sorted(link for link in found if link == f"{path}-wal")

    queue.enqueue("x", delay=3600)
    queue.claim(wait=0.01)
    before = len(descriptors())
    waiting()
    # The connection that asks for `data_version` has one; the watch itself has none.
    assert len(descriptors()) <= before + 1


def test_a_hundred_waits_at_once_share_one_watch_over_the_file(path, start):
    # A bell each; and all may look at the same moment, each by a connection with two descriptors. With a watch and a
    # connection of its own a wait would keep four.
    program = PROGRAMS / "a_hundred_waits.py"
    assert start(program, path).communicate(timeout=60)[0] == "0 True 0\n"


@pytest.mark.parametrize("what", ["instances", "watches"])
def test_without_file_events_a_wait_looks_often_enough_and_does_not_spin(path, queue, sql, what):
    program = PROGRAMS / "wait_without_file_events.py"
    own_limits = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*own_limits, "test", "-w", f"/proc/sys/user/max_inotify_{what}"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a user namespace of its own")
    command = [*own_limits, sys.executable, program, path, what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        # It looks every 20 ms; looking all the while costs ten times as much.
        assert float(process.stdout.readline()) < 0.02
        took = []
        for _ in range(3):
            time.sleep(0.1)
            queue.enqueue("x")
            committed = time.time()
            took.append(float(process.stdout.readline()) - committed)
    assert min(took) < 0.1


def test_ten_thousand_waits_of_one_process_cost_one_watcher(path, start):
    assert start(PROGRAMS / "ten_thousand_waits.py", path, "10000").communicate(timeout=120)[0] == "10000 True True\n"


def test_ten_thousand_claims_wait_in_line_and_get_each_item_once(path, start):
    right, processing, in_line, threads = (
        start(PROGRAMS / "ten_thousand_claims.py", path, "10000").communicate(timeout=120)[0].split()
    )
    assert (right, processing, in_line) == ("True", "50", "True")
    # The verbs beside the waits have their threads too.
    assert int(threads) <= 10 + 32
