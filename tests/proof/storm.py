"""The kill storm: producers, workers, a stranger with sqlite3 and a checkpointer, all killed at random moments."""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import GiveUp, NewItem, Queue, RetryLater, StaleClaimError

from proof.documents import document, uid_of
from proof.ledger import Ledger
from proof.nursery import ended, fork

ALIVE = 6
LIFETIME = (0.05, 3.0)
"""Of a process, in units of what opening and enqueueing once take it: on a busy machine all live longer."""
SIZES = (10, 10, 200, 200, 3000, 3000, 9000, 150_000)
KINDS = ("text", "bytes", "json")
GROUPS = (None, None, None, "a", "b", "c")
HASTE = 0.01
"""The lease of some claims, in seconds: it runs out while their holder lives."""
ENOUGH = 400
"""Producers rest while so many items wait."""


def receipts(items: Any) -> list[tuple[int, int]]:
    return [(item.id, item.attempt) for item in items]


class Role:
    """One process of the storm. It goes round and round until it is killed."""

    def __init__(self, path: Path, ledger: Path, who: str) -> None:
        self.path, self.dice, self.parent = path, random.Random(who), os.getppid()
        self.ledger = Ledger(ledger, who)
        self.uids = (f"{who}-{number}" for number in range(10**9))

    def live(self) -> None:
        queue = Queue(self.path)
        while os.getppid() == self.parent:
            self.round(queue)

    def round(self, queue: Queue) -> None:
        raise NotImplementedError

    def new(self) -> tuple[str, Any, dict[str, Any]]:
        """A document nobody has enqueued yet, and how to enqueue it."""
        uid = next(self.uids)
        options = {
            "priority": self.dice.choice((0, 0, 5, -1)),
            "group": self.dice.choice(GROUPS),
            "max_retries": self.dice.choice((None, None, 1, 50)),
        }
        return uid, document(uid, self.dice.choice(SIZES), self.dice.choice(KINDS)), options


class Producer(Role):
    """Enqueues, one by one and many at once."""

    def round(self, queue: Queue) -> None:
        if queue.pending() > ENOUGH:
            time.sleep(0.01)
        elif self.dice.random() < 0.7:
            uid, content, options = self.new()
            self.ledger.call("enqueue", lambda: [queue.enqueue(content, **options)], uids=[uid])
        else:
            batch = [self.new() for _ in range(self.dice.randint(2, 12))]
            items = [NewItem(content, **options) for _, content, options in batch]
            self.ledger.call("enqueue", lambda: queue.enqueue_many(items), uids=[uid for uid, *_ in batch])


class Worker(Role):
    """Claims by hand and ends its claims in every way there is."""

    def round(self, queue: Queue) -> None:
        kind = self.dice.choice(("one", "many", "group", "hasty"))
        items = self.ledger.call("claim", lambda: self.claimed(queue, kind), receipts)
        for item in items:
            assert uid_of(item.content), "an item came back altered"
        if kind == "hasty":
            time.sleep(self.dice.choice((0, 2 * HASTE)))
        if items and self.dice.random() < 0.2:
            self.ledger.call("mark_done_many", lambda: queue.mark_done_many(items), receipts=receipts(items))
        else:
            for item in items:
                try:
                    self.end(queue, item)
                except StaleClaimError:
                    # Its lease ran out, or it stood behind one of its group that did not end well.
                    assert kind in ("hasty", "group")
        if not items:
            time.sleep(0.005)

    def claimed(self, queue: Queue, kind: str) -> list[Any]:
        if kind == "group":
            return queue.claim_group()
        if kind == "many":
            return queue.claim_many(3)
        return [item for item in [queue.claim(lease=HASTE if kind == "hasty" else None)] if item]

    def end(self, queue: Queue, item: Any) -> None:
        about = {"receipts": receipts([item])}
        if self.dice.random() < 0.1:
            self.ledger.call("extend", lambda: queue.extend(item, 30), **about)
        fate = self.dice.random()
        if fate < 0.7:
            op = self.ledger.begin("mark_done", **about)
            self.ledger.end(op, queue.mark_done(item, result={"op": op}))
        elif fate < 0.8:
            again = self.dice.choice((None, 0))
            self.ledger.call("mark_failed", lambda: queue.mark_failed(item, "no luck", retry_in=again), **about)
        elif fate < 0.9:
            self.ledger.call("release", lambda: queue.release(item), **about)
        else:
            with item:
                self.ledger.begin("with", **about)


class Drainer(Role):
    """Drains, alone or beside others, with one thread or three."""

    def round(self, queue: Queue) -> None:
        report = queue.drain(self.handle, concurrency=self.dice.choice((1, 3)), exclusive=self.dice.random() < 0.3)
        if report.done == 0:
            time.sleep(0.005)

    def handle(self, item: Any) -> dict[str, str]:
        op = self.ledger.begin("handle", receipts=receipts([item]))
        assert uid_of(item.content), "an item came back altered"
        fate = self.dice.random()
        if fate < 0.05:
            raise RetryLater(0)
        if fate < 0.1:
            raise GiveUp("no hope")
        return {"op": op}


class Stranger(Role):
    """The application: its own sqlite3 connection to the file, in one process with a queue."""

    def round(self, queue: Queue) -> None:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        connection.execute("CREATE TABLE IF NOT EXISTS notes (uid TEXT)")
        for _ in range(5):
            self.write(queue, connection)
        connection.close()

    def write(self, queue: Queue, connection: sqlite3.Connection) -> None:
        uid, content, options = self.new()
        verb = self.dice.choice(("enqueue", "enqueue", "roll back"))
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO notes VALUES (?)", [uid])
        if self.dice.random() < 0.5:
            queue.enqueue(content, connection=connection, **options)
        else:
            text = document(uid, 50, "text")
            connection.execute("INSERT INTO ingest_queue (content) VALUES (?)", [text])
        end = "ROLLBACK" if verb == "roll back" else "COMMIT"
        self.ledger.call(verb, lambda: bool(connection.execute(end)), uids=[uid], note=True)


class Housekeeper(Role):
    """Opens, closes, tends, compacts, and checkpoints through a third copy of SQLite."""

    def live(self) -> None:
        while os.getppid() == self.parent:
            with Queue(self.path) as queue:
                queue.counts()
                if self.dice.random() < 0.5:
                    queue.tend()
                if self.dice.random() < 0.1:
                    queue.compact()
            connection = apsw.Connection(str(self.path))
            connection.set_busy_timeout(30_000)
            mode = self.dice.choice(("PASSIVE", "FULL", "RESTART", "TRUNCATE"))
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            connection.close()


ROLES = (Producer, Producer, Producer, Worker, Worker, Drainer, Drainer, Stranger, Housekeeper)


def pace(path: Path) -> float:
    """How long a few processes take, side by side, to open a queue and enqueue once."""
    began = time.monotonic()
    for pid in [fork(lambda: Queue(path).enqueue("x")) for _ in range(ALIVE)]:
        ended(pid)
    return time.monotonic() - began


def storm(path: Path, ledger: Path, kills: int, seed: int) -> dict[str, Any]:
    """Keep some processes alive, each for a random time, until so many were killed."""
    dice = random.Random(seed)
    unit = pace(path.with_suffix(".pace"))
    dying: list[tuple[float, int]] = []
    born, killed, crashed = 0, Counter[str](), []
    roles: dict[int, str] = {}
    while sum(killed.values()) < kills:
        while len(dying) < ALIVE:
            role = dice.choice(ROLES)
            pid = fork(lambda who, role: role(path, ledger, who).live(), f"{seed}:{born}", role)
            roles[pid] = role.__name__
            born += 1
            heapq.heappush(dying, (time.monotonic() + unit * dice.uniform(*LIFETIME), pid))
        deadline, pid = heapq.heappop(dying)
        time.sleep(max(0.0, deadline - time.monotonic()))
        os.kill(pid, signal.SIGKILL)
        code = ended(pid)
        if code == -signal.SIGKILL:
            killed[roles[pid]] += 1
        else:
            crashed.append((roles[pid], code))
            if len(crashed) > 10:
                break
    for _, pid in dying:
        os.kill(pid, signal.SIGKILL)
        killed[roles[pid]] += 1
        ended(pid)
    return {"kills": sum(killed.values()), "by role": killed, "crashed": crashed, "unit": unit}


def calm(path: Path, ledger: Path, seed: int) -> dict[str, Any]:
    """Handle everything that is left."""
    pen = Ledger(ledger, f"{seed}:calm")

    def handle(item: Any) -> dict[str, str]:
        return {"op": pen.begin("handle", receipts=receipts([item]))}

    with Queue(path) as queue:
        report = queue.drain(handle)
    return {"refused": report.refused, "drained": report.done}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    said = storm(given.path, given.ledger, given.kills, given.seed)
    print(json.dumps(said | calm(given.path, given.ledger, given.seed)))


if __name__ == "__main__":
    main()
