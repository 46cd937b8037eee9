"""The soak: mixed load by several processes for a time, a reader that pins the log now and then, and what they use."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import AsyncQueue, NewItem, Queue

from proof.documents import document, uid_of
from proof.nursery import ended, fork

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = 400
KEPT = 200
SIZES = (100,) * 30 + (5_000,) * 12 + (100_000,) * 5 + (1_000_000,) * 3
MB = 1 << 20

ALLOWED = {
    "rss": (5 * MB, 0.05),
    "descriptors": (2, 0.0),
    "threads": (1, 0.0),
    "log": (4 * MB, 1.0),
    "file": (8 * MB, 0.5),
}
"""How much more the last quarter may show than the second: so much, and such a part of it."""


def handle(item: Any) -> dict[str, Any]:
    if item.id % 50 == 0:
        raise ValueError("now and then something fails")
    return {"uid": uid_of(item.content)}


class Stop(threading.Event):
    """Set by SIGTERM."""

    def __init__(self) -> None:
        super().__init__()
        signal.signal(signal.SIGTERM, lambda *_: self.set())


def produce(path: Path, period: float) -> None:
    stop, dice, number = Stop(), random.Random(1), 0
    with Queue(path, max_pending=300) as queue:
        while not stop.wait(dice.uniform(0, 0.02)):
            number += 1
            content = document(f"u{number}", dice.choice(SIZES), dice.choice(("text", "bytes", "json")))
            group = dice.choice((None, "a", "b"))
            if queue.pending() > 200:
                continue
            if number % 10:
                queue.enqueue(content, group=group, priority=dice.randint(0, 2))
            else:
                queue.enqueue_many([content, NewItem(content, delay=0.05), NewItem("small", headers={"n": number})])


def work(path: Path, period: float) -> None:
    with Queue(path) as queue:
        queue.work(handle, concurrency=3)


def drain(path: Path, period: float) -> None:
    stop = Stop()
    with Queue(path) as queue:
        # A signal during a drain is the drain's.
        while not stop.wait(0.05) and not queue.drain(handle, concurrency=2, exclusive=False, limit=20).stopped:
            pass


def work_async(path: Path, period: float) -> None:
    async def handle_it(item: Any) -> Any:
        await asyncio.sleep(0.001)
        return handle(item)

    async def main() -> None:
        async with AsyncQueue(path) as queue:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.stop)
            await queue.work(handle_it, concurrency=4)

    asyncio.run(main())


def use(path: Path, period: float) -> None:
    """The application: its own connections and tables, queues opened and closed, reads, an item by hand."""
    stop, number = Stop(), 0
    while not stop.wait(0.02):
        number += 1
        connection = sqlite3.connect(path, timeout=30)
        with Queue(path) as queue:
            with connection:
                connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", [number % 100, "x" * 1000])
                queue.enqueue(document(f"own{number}", 50, "text"), connection=connection)
            if item := queue.claim(wait=0.01):
                with item:
                    item.set_progress(0.5)
            queue.items("done", limit=20)
            queue.stats()
        connection.close()


def pin(path: Path, period: float) -> None:
    """Read, and keep what was read from being folded back, for a quarter of each period."""
    stop = Stop()
    while not stop.is_set():
        connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM notes").fetchall()
        stop.wait(period / 4)
        connection.execute("COMMIT")
        connection.close()
        stop.wait(period * 3 / 4)


MEMBERS: tuple[Callable[[Path, float], None], ...] = (produce, work, drain, work_async, use, pin)


@dataclass
class Watch:
    """What was measured, by member and measure, one number a sample."""

    measured: dict[str, list[int]] = field(default_factory=dict)

    def note(self, name: str, number: int) -> None:
        self.measured.setdefault(name, []).append(number)

    def look(self, path: Path, members: dict[str, int]) -> None:
        for name, pid in members.items():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            status = dict(line.split(":", 1) for line in lines)
            self.note(f"{name} rss", int(status["VmRSS"].split()[0]) * 1024)
            self.note(f"{name} threads", int(status["Threads"]))
            self.note(f"{name} descriptors", len(os.listdir(f"/proc/{pid}/fd")))
        self.note("file", path.stat().st_size)
        log = Path(f"{path}-wal")
        self.note("log", log.stat().st_size if log.exists() else 0)


def quarters(numbers: list[int]) -> tuple[float, float]:
    """The medians of the second and of the last quarter: the first is for warming up."""
    quarter = len(numbers) // 4
    return statistics.median(numbers[quarter : 2 * quarter]), statistics.median(numbers[-quarter:])


def drifts(measured: dict[str, list[int]]) -> list[str]:
    """What is not flat."""
    found = []
    for name, numbers in measured.items():
        (constant, part), (before, after) = ALLOWED[name.split()[-1]], quarters(numbers)
        if after > before + constant + part * before:
            found.append(f"{name}: {before:.0f} in the second quarter, {after:.0f} in the last")
    return found


def soak(path: Path, seconds: float) -> dict[str, Any]:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    connection.close()
    with Queue(path) as queue:
        queue.configure(keep_last=KEPT, keep_failed_for=seconds / 20)
    members = {member.__name__: fork(member, path, seconds / 8) for member in MEMBERS}
    watch, over = Watch(), time.monotonic() + seconds
    while time.monotonic() < over:
        time.sleep(seconds / SAMPLES)
        watch.look(path, members)
    for pid in members.values():
        os.kill(pid, signal.SIGTERM)
    codes = {name: ended(pid) for name, pid in members.items()}
    with Queue(path) as queue:
        queue.tend()
        finished = max(item.id for item in queue.items(newest_first=True, limit=1))
    log = Path(f"{path}-wal")
    figures = {name: quarters(numbers) for name, numbers in watch.measured.items()}
    return {
        "codes": codes,
        "items": finished,
        "drifts": drifts(watch.measured),
        "figures": figures,
        "highest log": max(watch.measured["log"]),
        "log afterwards": log.stat().st_size if log.exists() else 0,
    }


if __name__ == "__main__":
    print(json.dumps(soak(Path(sys.argv[1]), float(sys.argv[2]))))
