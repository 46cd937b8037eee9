"""Programs that fork with a queue open; run by the tests beside them.

    python forks.py NAME PATH [--rounds N] [--off fork --off locks]

Each prints what it knows as one line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from membox_queue import Queue, QueueClosedError, _native

if TYPE_CHECKING:
    from collections.abc import Callable

# Far more than a child needs: a child that takes longer hangs.
CHILD_SECONDS = 30


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def child(work: Callable[[], None]) -> int:
    """Fork; the child runs `work` and leaves with 0, or with 1 when it raises. Returns its process id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return pid


def outcome(pid: int) -> int:
    """Wait for a child; a hung one is killed and counts as -9."""
    for _ in range(CHILD_SECONDS * 1000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -9


def locks_on(path: str, pid: int) -> int:
    """How many open-file-description locks the descriptors of a process have on a file."""
    inode = os.stat(path).st_ino
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.stat(f"/proc/{pid}/fd/{fd}").st_ino != inode:
                continue
            with open(f"/proc/{pid}/fdinfo/{fd}") as info:
                count += sum("OFDLCK" in line for line in info)
        except FileNotFoundError:
            continue
    return count


def inherited(path: str, rounds: int) -> None:
    """Parent and child go on with the same object."""
    queue = Queue(path)
    queue.enqueue("before")
    claimed = queue.claim()
    assert claimed is not None
    assert queue.acquire_worker_lease()

    def work() -> None:
        assert claimed.lost
        assert not queue.mark_done(claimed)
        assert not queue.refresh_worker_lease()
        assert queue.worker_is_alive()
        for number in range(rounds):
            queue.enqueue(f"child {number}")
        assert locks_on(path, os.getpid()) > 0

    pid = child(work)
    for number in range(rounds):
        queue.enqueue(f"parent {number}")
    code = outcome(pid)
    say(code=code, items=1 + 2 * rounds, parent_can_finish=queue.mark_done(claimed), lease=queue.refresh_worker_lease())
    os.kill(os.getpid(), signal.SIGKILL)


def opened(path: str, rounds: int) -> None:
    """A queue opened in the child holds locks of its own, also when the parent's are gone."""
    queue = Queue(path, durability="normal")
    queue.enqueue("before")
    go, ready = os.pipe(), os.pipe()

    def work() -> None:
        mine = Queue(path, durability="normal")
        mine.enqueue("child first")
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        for number in range(rounds):
            mine.enqueue(f"child {number}")
        os.kill(os.getpid(), signal.SIGKILL)

    pid = child(work)
    os.read(ready[0], 1)
    queue.close()
    locks = locks_on(path, pid)
    os.write(go[1], b"x")
    say(code=outcome(pid), items=2 + rounds, locks=locks)


def killed(path: str, rounds: int) -> None:
    """A forked child lives on while this process writes without a pause, to be killed in mid-transaction."""
    queue = Queue(path, durability="normal")
    queue.enqueue("before")
    pid = child(lambda: time.sleep(CHILD_SECONDS))
    say(child=pid)
    while True:
        queue.enqueue_many("x" * 100 for _ in range(20_000))


def storm(path: str, rounds: int) -> None:
    """Forks while other threads are in mid-commit and mid-open."""
    queue = Queue(path, durability="normal")
    stop = threading.Event()
    written = itertools.count()

    def commit() -> None:
        while not stop.is_set():
            queue.enqueue("parent")
            next(written)

    def reopen() -> None:
        while not stop.is_set():
            with Queue(path + "-other.db") as other:
                other.enqueue("x")

    threads = [threading.Thread(target=work) for work in (commit, reopen)]
    for thread in threads:
        thread.start()

    def work() -> None:
        queue.enqueue("child")
        with Queue(path, "fresh") as fresh:
            fresh.enqueue("child")

    codes = [outcome(child(work)) for _ in range(rounds)]
    stop.set()
    for thread in threads:
        thread.join()
    queue.close()
    say(bad=[code for code in codes if code != 0], items=next(written) + 2 * rounds)


def worker(queue: Queue, name: str, count: int) -> None:
    for number in range(count):
        queue.enqueue(f"{name} {number}")


def methods(path: str, rounds: int) -> None:
    """multiprocessing in all its ways, with the queue as an argument."""
    queue = Queue(path)
    codes = {}
    for method in ("fork", "spawn", "forkserver"):
        context: Any = multiprocessing.get_context(method)
        processes = [context.Process(target=worker, args=(queue, method, rounds)) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(CHILD_SECONDS)
        codes[method] = [process.exitcode for process in processes]
    say(codes=codes, items=3 * 2 * rounds)


def preload(path: str, rounds: int) -> None:
    """A server that opened the queue, and used it, before it forked its workers."""
    queue = Queue(path)
    queue.enqueue_many(f"request {number}" for number in range(rounds))

    def serve() -> None:
        while (item := queue.claim()) is not None:
            with item:
                pass

    codes = [outcome(pid) for pid in [child(serve) for _ in range(4)]]
    say(codes=codes, counts=queue.counts(), items=rounds)


def fork_in_waits(call: Callable[[], None], release: Callable[[], None], rounds: int) -> list[int]:
    """Forks from a signal handler while `call` waits in the main thread, then lets go of what it waits for."""
    parent, pids = os.getpid(), []

    def fork(*_: object) -> None:
        pid = os.fork()
        if pid:
            pids.append(pid)

    def disturb() -> None:
        for number in range(rounds):
            os.kill(parent, signal.SIGUSR1)
            while len(pids) == number:
                time.sleep(0.001)
        release()

    signal.signal(signal.SIGUSR1, fork)
    threading.Thread(target=disturb).start()
    try:
        call()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    if os.getpid() != parent:
        os._exit(0)
    return [outcome(pid) for pid in pids]


def waits(path: str, rounds: int) -> None:
    """A signal handler forks while a claim waits; parent and children all get an item."""
    queue, other = Queue(path), Queue(path, "other")

    def call() -> None:
        item = queue.claim(wait=CHILD_SECONDS)
        assert item is not None
        assert queue.mark_done(item)

    def release() -> None:
        for _ in range(rounds + 1):
            other.enqueue("for nobody who waits")
            queue.enqueue("x")

    codes = fork_in_waits(call, release, rounds)
    say(codes=codes, counts=queue.counts(), items=2 * (rounds + 1))


def busy(path: str, rounds: int) -> None:
    """A signal handler forks while an enqueue waits for another writer."""
    queue = Queue(path)
    parent = os.getpid()
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")

    def call() -> None:
        try:
            queue.enqueue("x")
        except QueueClosedError:
            assert os.getpid() != parent
            queue.enqueue("again")

    codes = fork_in_waits(call, lambda: connection.execute("ROLLBACK"), rounds)
    say(codes=codes, items=rounds + 1)


def subprocesses(path: str, rounds: int) -> None:
    """A program started from here inherits nothing of the queue's files."""
    queue = Queue(path)
    queue.enqueue("x")
    look = "import os; print([os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if int(f) > 2])"
    command = [sys.executable, "-c", f"import os\ntry:\n    {look}\nexcept FileNotFoundError:\n    print([])"]
    run = subprocess.run(command, close_fds=False, capture_output=True, text=True, check=True)
    say(inherited=[name for name in run.stdout.split("'") if path in name])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("path")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--off", action="append", default=[])
    arguments = parser.parse_args()
    _native.switch_off(*arguments.off)
    globals()[arguments.name](arguments.path, arguments.rounds)


if __name__ == "__main__":
    main()
