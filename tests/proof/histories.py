"""Short histories: four to eight processes call the verbs at random on one file, some are killed, all is recorded."""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import Queue, _native

from proof.ledger import Ledger
from proof.nursery import ended, fork

LEASE = 30.0
STEPS = 16
START_OF_TIME = 1_800_000_000_000


class SharedClock:
    """One clock for all processes; each looks at it before a call and keeps that reading during the call."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 8)
        self.set(START_OF_TIME)

    def set(self, ms: int) -> None:
        self.memory[:8] = struct.pack("q", ms)

    def look(self) -> int:
        (ms,) = struct.unpack("q", self.memory[:8])
        _native.set_clock(ms)
        return int(ms)


class Member:
    """One process: it enqueues, claims and ends claims, also some it no longer has."""

    def __init__(self, path: Path, book: Path, who: str, clock: SharedClock, durability: Any) -> None:
        self.dice, self.clock = random.Random(who), clock
        self.pen = Ledger(book, who)
        self.queue = Queue(path, lease=LEASE, max_retries=1000, durability=durability)
        self.held: list[Any] = []
        self.uids = (f"{who}-{number}" for number in range(10**6))

    def live(self) -> None:
        for _ in range(STEPS):
            choices = [self.enqueue, self.claim, self.claim, *[self.call] * min(3, len(self.held)), self.pass_time]
            self.dice.choice(choices)()
        self.pen.begin("leave", who=self.pen.who)

    def enqueue(self) -> None:
        uid, now = next(self.uids), self.clock.look()
        options = {"priority": self.dice.randint(0, 2), "group": self.dice.choice((None, "a", "b"))}
        self.pen.call("enqueue", lambda: self.queue.enqueue(uid, **options), uid=uid, clock=now, **options)

    def claim(self) -> None:
        now, group = self.clock.look(), self.dice.choice((None, None, None, "a"))
        item = self.pen.call(
            "claim",
            lambda: self.queue.claim(group=group),
            lambda item: item and [item.id, item.attempt],
            clock=now,
            group=group,
            lease=LEASE,
        )
        if item:
            self.held.append(item)

    def call(self) -> None:
        item, now = self.dice.choice(self.held), self.clock.look()
        about = {"id": item.id, "attempt": item.attempt, "clock": now}
        fate = self.dice.random()
        if fate < 0.35:
            self.pen.call("mark_done", lambda: self.queue.mark_done(item), **about)
        elif fate < 0.6:
            again = self.dice.choice((None, 0))
            self.pen.call(
                "mark_failed", lambda: self.queue.mark_failed(item, "no", retry_in=again), again=again, **about
            )
        elif fate < 0.8:
            self.pen.call("release", lambda: self.queue.release(item), **about)
        else:
            seconds = self.dice.choice((1, 30, 90))
            self.pen.call("extend", lambda: self.queue.extend(item, seconds), lease=seconds, **about)
        if self.dice.random() < 0.7:
            self.held.remove(item)

    def pass_time(self) -> None:
        self.clock.set(self.clock.look() + self.dice.choice((10, 1_000, 20_000, 40_000)))


def history(path: Path, book: Path, seed: int) -> int:
    """Let one history happen; says how many processes took part."""
    dice, clock, pen = random.Random(seed), SharedClock(), Ledger(book, "driver")
    durability = dice.choice(("normal", "full"))
    count = dice.randint(4, 8)
    gate, opener = os.pipe()

    def take_part(who: str) -> None:
        os.close(opener)
        member = Member(path, book, who, clock, durability)
        os.read(gate, 1)
        member.live()

    members = {f"{seed}:{number}": fork(take_part, f"{seed}:{number}") for number in range(count)}
    os.close(opener)
    os.close(gate)
    victims = [who for who in members if dice.random() < 0.1]
    for who in victims:
        time.sleep(dice.uniform(0, 0.03))
        pen.call("kill", lambda who=who: os.kill(members[who], signal.SIGKILL), who=who)
    codes = {who: ended(pid) for who, pid in members.items()}
    assert all(codes[who] == 0 for who in codes if who not in victims), codes

    def look() -> None:
        with Queue(path) as queue:
            items = queue.items(limit=1000)
            pen.call("final", lambda: [[item.id, item.content, item.status, item.attempt] for item in items])

    assert ended(fork(look)) == 0
    return count


def main() -> None:
    directory, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    processes = 0
    for seed in range(first, first + count):
        path = directory / f"{seed}.db"
        processes += history(path, directory / f"{seed}.ledger", seed)
        path.unlink()
    print(json.dumps({"processes": processes}))


if __name__ == "__main__":
    main()
