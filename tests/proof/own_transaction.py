"""The storm of own transactions: each item has an effect and a follow-up, and its worker is killed at any moment.

`python own_transaction.py PATH ITEMS SEED together|apart`: together in the transaction that ends the item, or, as the
control, committed before it. In its last line it says what it found.
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

from membox_queue import Queue

from proof.nursery import ended, fork

ALIVE = 3
DEATH = 0.04
"""How likely a worker dies at each of its dangerous moments."""
LIFETIME = (0.02, 0.4)
"""Of a worker until it is killed from outside, in seconds."""


def work(path: Path, seed: int, is_together: bool) -> None:
    """Handle what is there, until killed."""
    dice = random.Random(seed)
    queue, after = Queue(path), Queue(path, "after")
    own = sqlite3.connect(path, timeout=60)

    def danger() -> None:
        if dice.random() < DEATH:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(item):
        own.execute("INSERT INTO effects VALUES (?)", [item.id])
        danger()
        after.enqueue(item.id, connection=own)
        danger()

    def together(item):
        with item.transaction(own):
            effect(item)
            if dice.random() < 0.5:
                queue.mark_done(item, item.id, connection=own)
            danger()
        danger()

    def apart(item):
        with own:
            effect(item)
        danger()

    queue.drain(together if is_together else apart, exclusive=False)


def storm(path: Path, items: int, seed: int, is_together: bool) -> dict[str, int]:
    """Let workers come and be killed until every item is done; what is there then."""
    dice = random.Random(seed)
    kills = 0
    # In a child: a process that forks has no queue open.
    assert ended(fork(prepare, path, items)) == 0
    pids: dict[int, float] = {}
    crashed = 0
    while True:
        while len(pids) < ALIVE:
            pids[fork(work, path, dice.randrange(2**32), is_together)] = time.monotonic() + dice.uniform(*LIFETIME)
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


def prepare(path: Path, items: int) -> None:
    """Make the file, with items that may be lost any number of times."""
    with Queue(path, max_retries=10_000) as queue:
        queue.enqueue_many(list(range(items)))
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE effects (item INTEGER)")


def is_all_done(path: Path) -> bool:
    """Whether nothing is pending or in progress."""
    statement = "SELECT count(*) FROM ingest_queue WHERE queue = 'ingest' AND status IN ('pending', 'processing')"
    with closing(sqlite3.connect(path, timeout=60)) as own:
        return own.execute(statement).fetchone() == (0,)


def found(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as own:
        effects = Counter(item for (item,) in own.execute("SELECT item FROM effects"))
        follow = Counter(text for (text,) in own.execute("SELECT content FROM ingest_queue WHERE queue = 'after'"))
        done = own.execute("SELECT count(*) FROM ingest_queue WHERE queue = 'ingest' AND status = 'done'").fetchone()[0]
        assert own.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return {
        "done": done,
        "effects": len(effects),
        "doubled": sum(count > 1 for count in effects.values()),
        "follow_ups": len(follow),
        "doubled_follow_ups": sum(count > 1 for count in follow.values()),
    }


if __name__ == "__main__":
    said = storm(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "together")
    print(json.dumps(said))
