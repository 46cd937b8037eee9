"""Programs in which another copy of SQLite and the queue use one file in one process; run by the tests beside them.

    python scenarios.py NAME PATH [--copy sqlite3|apsw] [--rounds N] [--off locks --off commit-check]

Each prints what it knows as one line of JSON: how many rows it was told are safe.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import apsw
from membox_queue import Queue, QueueBusyError, _native

STRANGER = Path(__file__).parents[2] / "programs" / "stranger.py"


class User:
    """The application's own connection, by one of the other copies of SQLite."""

    def __init__(self, path: str, copy: str) -> None:
        if copy == "apsw":
            self.connection: Any = apsw.Connection(path)
            self.connection.set_busy_timeout(20_000)
        else:
            self.connection = sqlite3.connect(path, timeout=20, isolation_level=None, check_same_thread=False)
        self.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")

    def execute(self, sql: str, *values: Any) -> list[Any]:
        return list(self.connection.execute(sql, values))

    def note(self, text: str) -> None:
        self.execute("INSERT INTO notes (text) VALUES (?)", text)

    def close(self) -> None:
        self.connection.close()


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def storm(path: str, copy: str, rounds: int) -> None:
    """Both copies write as fast as they can, the user reconnecting now and then."""
    queue = Queue(path, durability="normal")
    User(path, copy).close()
    acknowledged = {"items": 0, "notes": 0}
    errors: list[str] = []

    def produce() -> None:
        for number in range(rounds):
            queue.enqueue(f"item {number}")
            acknowledged["items"] += 1

    def annotate() -> None:
        user = User(path, copy)
        for number in range(rounds):
            user.note(f"note {number}")
            acknowledged["notes"] += 1
            if number % 50 == 49:
                user.close()
                user = User(path, copy)
        user.close()

    def guarded(work: Any) -> None:
        try:
            work()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (produce, annotate)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.close()
    say(**acknowledged, errors=errors)


def closing(path: str, copy: str, rounds: int) -> None:
    """The user connects, selects and closes between enqueues; then the process is killed."""
    queue = Queue(path, durability="normal")
    acknowledged = 0
    for number in range(rounds):
        queue.enqueue(f"item {number}")
        acknowledged += 1
        if number % 10 == 0:
            user = User(path, copy)
            user.execute("SELECT count(*) FROM ingest_queue")
            user.close()
    say(items=acknowledged)
    os.kill(os.getpid(), signal.SIGKILL)


def touching(path: str, copy: str, rounds: int) -> None:
    """Any code opens and closes the database and its -shm as plain files; then the process is killed."""
    queue = Queue(path, durability="normal")
    acknowledged = 0
    for number in range(rounds):
        queue.enqueue(f"item {number}")
        acknowledged += 1
        if number % 10 == 0:
            for name in (path, path + "-shm"):
                with open(name, "rb") as file:
                    file.read(16)
            if number % 50 == 0:
                stranger(path)
    say(items=acknowledged)
    os.kill(os.getpid(), signal.SIGKILL)


def transaction(path: str, copy: str, rounds: int) -> None:
    """The user's transaction stays open while the queue opens, works and closes."""
    with Queue(path) as queue:
        queue.enqueue("first")
    user = User(path, copy)
    committed = intruders = unnamed = 0
    for number in range(rounds):
        user.execute("BEGIN IMMEDIATE")
        user.note(f"note {number}")
        with Queue(path, busy_timeout=0.001) as queue:
            assert queue.pending() >= 1
            try:
                queue.enqueue("too early")
                intruders += 1
            except QueueBusyError as error:
                unnamed += "this very process" not in str(error)
        if number % 5 == 0 and stranger(path) != "locked":
            intruders += 1
        user.execute("COMMIT")
        committed += 1
        with Queue(path) as queue:
            queue.enqueue("after")
    say(notes=committed, items=1 + rounds, intruders=intruders, unnamed=unnamed)
    os.kill(os.getpid(), signal.SIGKILL)


def drain(path: str, copy: str, rounds: int) -> None:
    """The membox case: a handler writes to its own table in the same file while heartbeats run."""
    queue = Queue(path, lease=0.06)
    queue.enqueue_many(f"document {number}" for number in range(rounds))
    local = threading.local()

    def handler(item: Any) -> None:
        if not hasattr(local, "user"):
            local.user = User(path, copy)
        local.user.execute("BEGIN IMMEDIATE")
        local.user.note(item.content)
        local.user.execute("COMMIT")
        if item.id % 25 == 0:
            # Long enough for several renewals beside the open connection.
            threading.Event().wait(0.15)
            local.user.close()
            del local.user

    # In a file that is harmed what is done comes back for long.
    report = queue.drain(handler, limit=2 * rounds)
    queue.close()
    say(items=rounds, notes=rounds, done=report.done, lost=report.lost)


def stranger(path: str) -> str:
    run = subprocess.run([sys.executable, STRANGER, path], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def pile(path: str, copy: str, rounds: int) -> None:
    """Many temporary queues, alone and beside a user's connection, leave no pile of descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    for number in range(rounds):
        name = f"{path}-{number}.db"
        queue = Queue(name)
        queue.enqueue("x")
        user = User(name, copy) if number % 2 else None
        queue.close()
        if user is not None:
            user.note("x")
            user.close()
        for suffix in ("", "-wal", "-shm"):
            if number % 3 == 0 and os.path.exists(name + suffix):
                os.remove(name + suffix)
    say(before=before, after=len(os.listdir("/proc/self/fd")))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("path")
    parser.add_argument("--copy", default="sqlite3")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--off", action="append", default=[])
    arguments = parser.parse_args()
    _native.switch_off(*arguments.off)
    globals()[arguments.name](arguments.path, arguments.copy, arguments.rounds)


if __name__ == "__main__":
    main()
