"""Zombies: workers stopped past their lease, who wake up when others have taken over, change nothing."""

import json
import os
import signal
from pathlib import Path

import pytest

LEASE = 60

TABLES = ("ingest_queue", "membox_queue_history", "membox_queue_counts")

SUCCESSORS = {
    "holds it": lambda queue, item: None,
    "did it": lambda queue, item: queue.mark_done(item, result="right"),
    "failed at it": lambda queue, item: queue.mark_failed(item, "right"),
    "gave it back": lambda queue, item: queue.release(item, delay=3600),
    "removed it": lambda queue, item: queue.delete(item.id),
    "cancelled it": lambda queue, item: queue.cancel(item.id),
}


class Zombie:
    """A worker in a process of its own."""

    def __init__(self, process):
        self.process = process

    def tell(self, *what):
        self.process.stdin.write(f"{json.dumps(what[0] if len(what) == 1 else what)}\n")
        self.process.stdin.flush()

    def says(self):
        return json.loads(self.process.stdout.readline())

    def sleep(self, until):
        os.kill(self.process.pid, signal.SIGSTOP)
        until(lambda: Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")

    def wake(self):
        os.kill(self.process.pid, signal.SIGCONT)


@pytest.fixture
def zombie(path, start):
    return Zombie(start((Path(__file__).parent / "zombie.py").read_text(), path))


def take_over(queue, clock, sql, path, count, successors):
    """Let the leases run out, claim everything again and do different things with it; the tables as they are then."""
    clock.advance(LEASE)
    # A claim takes back a bounded number of items.
    number = 0
    while item := queue.claim():
        successors[number % len(successors)](queue, item)
        number += 1
    assert number == count
    return tables(sql, path)


def tables(sql, path):
    return [sql(path, f"SELECT * FROM {table}") for table in TABLES]


ROUNDS = pytest.mark.parametrize(
    ("rounds", "least"),
    [pytest.param(1, 200, id="short"), pytest.param(45, 10_000, id="long", marks=pytest.mark.proof)],
)


@ROUNDS
@pytest.mark.timeout(1800)
def test_late_calls_change_nothing(queue, path, clock, sql, until, zombie, rounds, least):
    calls = 0
    for _ in range(rounds):
        queue.enqueue_many(range(30))
        zombie.tell("by hand", 30, clock.ms)
        assert zombie.says() == 30
        zombie.sleep(until)
        before = take_over(queue, clock, sql, path, 30, list(SUCCESSORS.values()))
        zombie.wake()
        zombie.tell(clock.ms)
        said = zombie.says()
        assert said["accepted"] == {}
        calls += said["calls"]
        assert tables(sql, path) == before
        for item in queue.items("processing", limit=1000):
            queue.delete(item.id)
    print(f"{calls} late calls, 0 accepted")
    assert calls >= least


@pytest.mark.parametrize("rounds", [pytest.param(1, id="short"), pytest.param(50, id="long", marks=pytest.mark.proof)])
@pytest.mark.timeout(1800)
def test_a_late_drain_finishes_nothing(queue, path, clock, sql, until, zombie, rounds):
    at_once = 8
    successors = [SUCCESSORS[name] for name in ("holds it", "did it", "failed at it", "removed it")]
    for _ in range(rounds):
        queue.enqueue_many(range(at_once))
        zombie.tell("drain", at_once, clock.ms)
        assert zombie.says() == at_once
        zombie.sleep(until)
        before = take_over(queue, clock, sql, path, at_once, successors)
        zombie.wake()
        zombie.tell(clock.ms)
        assert zombie.says() == {"calls": at_once, "accepted": {}}
        assert tables(sql, path) == before
        for item in queue.items("processing", limit=1000):
            queue.delete(item.id)
    print(f"{rounds * at_once} items of late drains, none finished")
