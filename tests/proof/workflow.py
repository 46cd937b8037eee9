"""The storm of workflows: stages, fan-out, fan-in, steps and gathers, while workers are killed at any moment.

`python workflow.py PATH ORDERS SEED`: each order is charged, split into three pages and merged, and gathers two more.
In its last line it says what it found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import NewItem, Next, Queue, Worker

from proof.nursery import ended, fork

ALIVE = 3
DEATH = 0.02
"""How likely a worker dies at each of its dangerous moments."""
LIFETIME = (0.05, 0.6)
"""Of a worker until it is killed from outside, in seconds."""
QUEUES = ("orders", "pages", "merge", "late", "notes")


def work(path: Path, seed: int) -> None:
    """Handle what is there, until killed."""
    dice = random.Random(seed)
    own = sqlite3.connect(path, timeout=60)

    def danger() -> None:
        if dice.random() < DEATH:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(kind: str, item) -> str:
        own.execute("INSERT INTO effects VALUES (?, ?)", [kind, item.id])
        danger()
        return kind

    def plain(item) -> None:
        with own:
            effect("plain", item)
        danger()

    def charge(item):
        with own:
            item.step("charge", effect, "charge", item, connection=own)
            danger()
        danger()
        pages = [NewItem([item.content, page], queue="pages") for page in range(3)]
        return Next({"order": item.content}, queue="merge", after=pages)

    def page(item):
        with own:
            item.step("page", effect, "page", item, connection=own)
        item.enqueue(item.content, queue="notes")
        danger()
        return item.content[1]

    def merge(item):
        danger()
        late = item.gather("late", [NewItem(number, queue="late") for number in range(2)])
        danger()
        item.step("plain", plain, item)
        danger()
        return [each.result for each in item.after[:3]] + [each.result for each in late]

    handlers = {"orders": charge, "pages": page, "merge": merge, "late": lambda item: item.content * 10}
    Worker(path, handlers).drain()


def storm(path: Path, orders: int, seed: int) -> dict[str, object]:
    """Let workers come and be killed until every order is done; what is there then."""
    dice = random.Random(seed)
    # In a child: a process that forks has no queue open.
    assert ended(fork(prepare, path, orders)) == 0
    pids: dict[int, float] = {}
    kills = crashed = 0
    while True:
        while len(pids) < ALIVE:
            pids[fork(work, path, dice.randrange(2**32))] = time.monotonic() + dice.uniform(*LIFETIME)
        time.sleep(0.005)
        for pid, until in list(pids.items()):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if not gone and time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                gone, status = os.waitpid(pid, 0)
            if gone:
                del pids[pid]
                code = os.waitstatus_to_exitcode(status)
                kills += code == -signal.SIGKILL
                crashed += code == 1
                if code == 0 and is_all_done(path):
                    for other in pids:
                        os.kill(other, signal.SIGKILL)
                        os.waitpid(other, 0)
                    return found(path) | {"kills": kills, "crashed": crashed}


def prepare(path: Path, orders: int) -> None:
    """Make the file, with items that may be lost any number of times."""
    for name in QUEUES:
        Queue(path, name, max_retries=10_000).close()
    with Queue(path, "orders") as queue:
        queue.enqueue_many([NewItem(number, key=f"order-{number}") for number in range(orders)])
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE effects (kind TEXT, item INTEGER)")


def is_all_done(path: Path) -> bool:
    """Whether nothing is unfinished but the notes."""
    statement = "SELECT count(*) FROM ingest_queue WHERE status <> 'done' AND queue <> 'notes'"
    with closing(sqlite3.connect(path, timeout=60)) as own:
        return own.execute(statement).fetchone() == (0,)


def found(path: Path) -> dict[str, object]:
    """What is in the file."""
    with closing(sqlite3.connect(path)) as own:
        effects = Counter(own.execute("SELECT kind, item FROM effects"))
        kinds = Counter(kind for kind, _ in effects)
        doubled = Counter(kind for (kind, _), count in effects.items() if count > 1)
        items = dict(own.execute("SELECT queue, count(*) FROM ingest_queue GROUP BY queue"))
        results = Counter(text for (text,) in own.execute("SELECT result FROM ingest_queue WHERE queue = 'merge'"))
        counted = own.execute(
            "SELECT count(*) FROM membox_queue_counts AS counts WHERE active + done + blocked + failed "
            "+ cancelled <> (SELECT count(*) FROM ingest_queue WHERE ingest_queue.queue = counts.queue)"
        )
        said = {
            "effects": kinds,
            "doubled": doubled,
            "items": items,
            "results": results,
            "wrong_counts": counted.fetchone()[0],
            "open_edges": own.execute("SELECT count(*) FROM membox_queue_after WHERE state <> 1").fetchone()[0],
            "awaited": own.execute("SELECT count(*) FROM membox_queue_awaited").fetchone()[0],
        }
        assert own.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return said


if __name__ == "__main__":
    print(json.dumps(storm(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
