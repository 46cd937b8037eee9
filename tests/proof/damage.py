"""Damaged files: a program that damages copies of a file at random and lets victims work with them.

`python -m proof.damage SEED CASES FOLDER`, with tests/ on the path, prints one JSON report. Every victim is a process
of its own, so that a crash or a hang is seen. It may get errors of ours and nothing else, and only what was enqueued.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from membox_queue import NewItem, Queue, QueueError

PAGE = 4096
HANGS_AFTER = 60
"""Seconds; a victim needs a few hundredths."""

SUFFIXES = ("", "-wal", "-shm")
Files = dict[str, bytes]


def content(number: int) -> Any:
    """Something of every kind and size, different for every number."""
    kinds: list[Any] = [
        f"note {number}",
        f"document {number} " * 900,
        {"number": number, "text": "x" * number},
        f"bytes {number}".encode() * 40,
    ]
    return kinds[number % 4]


def headers(number: int) -> dict[str, Any]:
    return {"number": number} if number % 3 else {}


def items(numbers: range) -> list[NewItem]:
    return [
        NewItem(
            content(number),
            headers=headers(number) or None,
            group=f"g{number % 5}" if number % 2 else None,
            key=f"k{number}" if number % 7 == 0 else None,
            priority=number % 3,
            delay=10_000 if number % 11 == 0 else None,
        )
        for number in numbers
    ]


def snapshot(path: Path) -> Files:
    files = {suffix: path.with_name(path.name + suffix) for suffix in SUFFIXES}
    return {suffix: file.read_bytes() for suffix, file in files.items() if file.exists()}


class Originals:
    """The same file at four moments: open with an old log, open with a new one, closed; and another file's log."""

    def __init__(self, folder: Path) -> None:
        path = folder / "original.db"
        with Queue(path) as queue:
            queue.enqueue_many(items(range(30)))
            queue.schedule("beat", content(500), headers=headers(500), every=1)
        with Queue(path, lease=600) as queue:
            queue.enqueue_many(items(range(30, 40)))
            self.old = snapshot(path)
            for number, item in enumerate(queue.claim_many(12)):
                if number % 3 == 0:
                    queue.mark_done(item)
                elif number % 3 == 1:
                    queue.mark_failed(item, "no")
            queue.enqueue_many(items(range(40, 60)))
            self.open = snapshot(path)
        self.closed = snapshot(path)
        with Queue(folder / "other.db") as other:
            other.enqueue_many(items(range(1000, 1030)))
            self.other = snapshot(folder / "other.db")


def flip(data: bytes, dice: random.Random, times: int, first: int = 0, last: int | None = None) -> bytes:
    changed = bytearray(data)
    for _ in range(times):
        changed[dice.randrange(first, min(last or len(data), len(data)))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def page(data: bytes, dice: random.Random) -> bytes:
    """One page or sector becomes garbage, zeros, or a copy of another."""
    size = dice.choice([512, PAGE])
    start = dice.randrange(len(data) // size) * size
    other = dice.randrange(len(data) // size) * size
    instead = dice.choice([dice.randbytes(size), bytes(size), b"\xff" * size, data[other : other + size]])
    return data[:start] + instead + data[start + size :]


def cut(data: bytes, dice: random.Random) -> bytes:
    where = dice.randrange(1, len(data) + 1)
    return data[: dice.choice([where, where // PAGE * PAGE or 1])]


def flip_content(data: bytes, dice: random.Random) -> bytes:
    """Where a document is, if it is stored in one piece there."""
    at = data.find(f"{dice.choice(['note', 'document', 'number'])} {dice.randrange(60)}".encode())
    return flip(data, dice, 1) if at < 0 else flip(data, dice, 1, at, at + 16)


def damage(made: Originals, dice: random.Random) -> tuple[str, Files]:
    """What was done, and the files that came of it."""
    closed, live, old = dict(made.closed), dict(made.open), dict(made.old)
    any_of = dice.choice([closed, live])
    kinds = {
        "bits of the file": lambda: any_of | {"": flip(any_of[""], dice, dice.choice([1, 1, 2, 8, 64]))},
        "bits of a document": lambda: closed | {"": flip_content(closed[""], dice)},
        "bits of the header": lambda: any_of | {"": flip(any_of[""], dice, dice.randint(1, 4), 0, 100)},
        "bits of the schema": lambda: any_of | {"": flip(any_of[""], dice, dice.randint(1, 4), 100, 4 * PAGE)},
        "bits of the log": lambda: live | {"-wal": flip(live["-wal"], dice, dice.choice([1, 2, 16]))},
        "bits of a document in the log": lambda: live | {"-wal": flip_content(live["-wal"], dice)},
        "bits of the shared memory": lambda: live | {"-shm": flip(live["-shm"], dice, dice.choice([1, 16, 256]))},
        "a page of the file": lambda: any_of | {"": page(any_of[""], dice)},
        "a page of the log": lambda: live | {"-wal": page(live["-wal"], dice)},
        "a page of the shared memory": lambda: live | {"-shm": page(live["-shm"], dice)},
        "the end of the file": lambda: any_of | {"": cut(any_of[""], dice)},
        "all of the file, but not its log": lambda: live | {"": b""},
        "the end of the log": lambda: live | {"-wal": cut(live["-wal"], dice)},
        "the end of the shared memory": lambda: live | {"-shm": cut(live["-shm"], dice)},
        "an old log": lambda: live | {"-wal": old["-wal"]},
        "an old log beside a newer file": lambda: closed | {"-wal": old["-wal"], "-shm": old["-shm"]},
        "an old file": lambda: live | {"": old[""]},
        "old shared memory": lambda: live | {"-shm": old["-shm"]},
        "another's log": lambda: any_of | {"-wal": made.other["-wal"]},
        "another's log and shared memory": lambda: any_of | {"-wal": made.other["-wal"], "-shm": made.other["-shm"]},
        "no log": lambda: {"": live[""], "-shm": live["-shm"]},
        "a log that is no log": lambda: any_of | {"-wal": dice.randbytes(dice.randrange(1, 50_000))},
    }
    kind = dice.choice(list(kinds))
    return kind, kinds[kind]()


KNOWN = {json.dumps([repr(content(n)), headers(n)]) for n in [*range(60), 500, *range(1000, 1030)]}


def victim(path: Path) -> dict[str, Any]:
    """Does what a program does with a queue; says what it got."""
    told: dict[str, Any] = {"errors": [], "strange": [], "wrong": [], "delivered": 0, "opened": False, "seen": None}

    def attempt(verb: Any) -> Any:
        try:
            return verb()
        except QueueError as error:
            told["errors"].append(type(error).__name__)
        except BaseException as error:
            told["strange"].append(repr(error)[:300])
        return None

    def deliver(item: Any) -> None:
        told["delivered"] += 1
        if json.dumps([repr(item.content), item.headers]) not in KNOWN:
            told["wrong"].append([item.id, repr(item.content)[:200], item.headers])

    queue = attempt(lambda: Queue(path, durability="normal", busy_timeout=2))
    if queue is None:
        return told
    told["opened"] = True
    seen = attempt(lambda: queue.items(limit=1000))
    told["seen"] = None if seen is None else len(seen)
    attempt(queue.counts)
    attempt(queue.stats)
    attempt(queue.failures)
    attempt(lambda: queue.enqueue(content(3)))
    item = attempt(queue.claim)
    if item is not None:
        deliver(item)
        attempt(lambda: queue.mark_done(item))
    for item in attempt(lambda: queue.claim_many(5)) or []:
        deliver(item)
        attempt(lambda item=item: queue.mark_failed(item, "no"))
    for item in attempt(queue.claim_group) or []:
        deliver(item)
    attempt(queue.retry_failed)
    attempt(lambda: queue.replay(2))
    attempt(lambda: queue.cancel(5))
    attempt(lambda: queue.history(1))
    attempt(queue.schedules)
    attempt(lambda: queue.drain(deliver))
    attempt(lambda: queue.prune(0))
    attempt(queue.compact)
    attempt(queue.close)
    return told


def run(path: Path) -> tuple[dict[str, Any] | None, int]:
    """What a victim said, and how its process ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS_AFTER)
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(victim(path), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    return (json.loads(said) if said else None), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def judge(path: Path, given: Files, inode: int, told: dict[str, Any] | None, code: int) -> list[str]:
    """What must not happen, of what did."""
    if told is None or code != 0:
        return [f"the victim ended with {code}"]
    faults = [f"an error that is none of ours: {error}" for error in told["strange"]]
    faults += [f"wrong content was delivered: {wrong}" for wrong in told["wrong"]]
    after = snapshot(path)
    if "" not in after or path.stat().st_ino != inode:
        faults.append("the file is gone or another one")
    elif given[""] and not after[""]:
        faults.append("the file was emptied")
    elif told["seen"] == 0:
        faults.append("an empty queue was made of a file with items")
    elif not told["opened"] and "-wal" not in given and after != given:
        faults.append("a file that was refused was written to")
    return faults


def main(seed: int, cases: int, folder: Path) -> dict[str, Any]:
    (folder / "made").mkdir(parents=True)
    made = Originals(folder / "made")
    dice = random.Random(seed)
    done, errors, faults = Counter[str](), Counter[str](), []
    delivered = opened = 0
    for number in range(cases):
        kind, files = damage(made, dice)
        place = folder / str(number)
        place.mkdir()
        path = place / "memory.db"
        for suffix, data in files.items():
            path.with_name(path.name + suffix).write_bytes(data)
        inode = path.stat().st_ino
        told, code = run(path)
        found = judge(path, files, inode, told, code)
        faults += [{"case": number, "kind": kind, "fault": fault} for fault in found]
        done[kind] += 1
        if told:
            errors.update(told["errors"])
            delivered += told["delivered"]
            opened += told["opened"]
        if not found:
            shutil.rmtree(place)
    return {
        "cases": cases,
        "kinds": done,
        "opened": opened,
        "delivered": delivered,
        "errors": errors,
        "faults": faults,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
