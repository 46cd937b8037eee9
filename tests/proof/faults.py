"""Meets a verb with a fault at each of its system calls, and looks at what it said and what it left.

Run with the disk of disk.c loaded: `python -m proof.faults death|error VERB STEP`, where every STEP-th call is met.
Prints JSON: how many trials there were, and what was wrong. `calls` instead prints the calls themselves, made between
two looks at files that do not exist, by which another observer finds them.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from membox_queue import Queue, QueueBusyError, StorageError
from sqlite.test_membox_file import MEMBOX, ROWS
from sqlite.test_versions import (
    DOWN_TO_VERSION_1,
    DOWN_TO_VERSION_2,
    DOWN_TO_VERSION_3,
    DOWN_TO_VERSION_4,
    VERSION_5,
)

from proof.disk import Disk, Fault, memory_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPED = (StorageError, QueueBusyError)
ERRORS = [errno.EIO, errno.ENOSPC, errno.EINTR, errno.EROFS, errno.EACCES]
LASTING = [errno.EIO, errno.ENOSPC, errno.EROFS]
NAME = "memory.db"
BEGIN, END = "/membox-proof/begin", "/membox-proof/end"
THREADS = 4
# A thousand frames: from there on the writer itself folds the log after its commit.
LONG_LOG = 1000 * (4096 + 24)


@dataclass
class Verb:
    """How a file is made before the trial, what is open when the fault comes, and what meets it."""

    make: Callable[[Path], None]
    begin: Callable[[Path], Any]
    act: Callable[[Any], Any]
    end: Callable[[Any], None]


def queue(path: Path) -> Queue:
    return Queue(path, busy_timeout=0.5)


def full(path: Path) -> None:
    """A file with items of every kind, closed."""
    with queue(path) as made:
        made.enqueue_many(["done", "failed", "older", "old"])
        made.mark_done(made.claim())
        made.mark_failed(made.claim(), "no")


def left_open(path: Path) -> None:
    """The same as a process left it that was killed: with a log."""
    full(path)
    and_die(lambda: queue(path).enqueue("in the log"))


def left_long(path: Path) -> None:
    """The same with a log so long that the next commit folds it."""
    full(path)

    def write() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF")
        while os.path.getsize(f"{path}-wal") < LONG_LOG:
            connection.execute("UPDATE ingest_queue SET project = 'p'")
            connection.execute("UPDATE ingest_queue SET project = NULL")

    and_die(write)


def and_die(work: Callable[[], Any]) -> None:
    """Do something in a process that closes nothing behind it."""
    if (pid := os.fork()) == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


SOME_ROWS = """
INSERT INTO ingest_queue (content, status, attempt, finished_at) VALUES ('done', 'done', 1, '2026-01-01 00:00:00.000');
INSERT INTO ingest_queue (content, status, attempt, finished_at) VALUES ('no', 'failed', 1, '2026-01-01 00:00:00.000');
INSERT INTO ingest_queue (content) VALUES ('older'), ('old');
"""


def version_5(path: Path) -> None:
    script(path, VERSION_5, SOME_ROWS)


def version_4(path: Path) -> None:
    version_5(path)
    script(path, DOWN_TO_VERSION_4)


def version_3(path: Path) -> None:
    version_4(path)
    script(path, DOWN_TO_VERSION_3)


def version_2(path: Path) -> None:
    version_3(path)
    script(path, DOWN_TO_VERSION_2)


def version_1(path: Path) -> None:
    version_2(path)
    script(path, DOWN_TO_VERSION_1)


def membox(path: Path) -> None:
    script(path, MEMBOX, ROWS)


def nothing(path: Path) -> None:
    pass


def script(path: Path, *scripts: str) -> None:
    connection = sqlite3.connect(path)
    for each in scripts:
        connection.executescript(each)
    connection.close()


class Opening:
    """A queue that the verb itself opens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.queue: Queue | None = None

    def open(self) -> None:
        self.close()
        self.queue = queue(self.path)

    def close(self) -> None:
        if self.queue is not None:
            self.queue.close()


class Claimed:
    """A queue and two of its claims."""

    def __init__(self, path: Path) -> None:
        self.queue = queue(path)
        self.items = self.queue.claim_many(2)

    def done(self) -> None:
        self.queue.mark_done(self.items[0], result=7)

    def close(self) -> None:
        self.queue.close()


def on_queue(act: Callable[[Queue], Any], make: Callable[[Path], None] = full) -> Verb:
    return Verb(make, queue, act, Queue.close)


def opening(make: Callable[[Path], None]) -> Verb:
    return Verb(make, Opening, Opening.open, Opening.close)


VERBS = {
    "enqueue": on_queue(lambda queue: queue.enqueue("new")),
    "enqueue_many": on_queue(lambda queue: queue.enqueue_many(["new"] * 200)),
    "enqueue_and_fold": on_queue(lambda queue: queue.enqueue("new"), left_long),
    "claim": on_queue(lambda queue: queue.claim()),
    "mark_done": Verb(full, Claimed, Claimed.done, Claimed.close),
    "prune": on_queue(lambda queue: queue.prune(older_than=0)),
    "compact": on_queue(lambda queue: queue.compact()),
    "counts": on_queue(lambda queue: queue.counts()),
    "close": Verb(full, lambda path: (opened := queue(path), opened.enqueue("new"))[0], Queue.close, Queue.close),
    "create": opening(nothing),
    "open": opening(full),
    "open_left": opening(left_open),
    "migrate_1": opening(version_1),
    "migrate_2": opening(version_2),
    "migrate_3": opening(version_3),
    "migrate_4": opening(version_4),
    "migrate_5": opening(version_5),
    "migrate_membox": opening(membox),
}

LOOK = "SELECT id, content, status, retries, error FROM ingest_queue ORDER BY id"


def look(path: Path) -> tuple[str, Any]:
    """What plain SQLite says of a file nobody has open: whether it is sound, and what is in it."""
    if not path.exists():
        return "ok", None
    connection = sqlite3.connect(path, timeout=5)
    try:
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "ingest_queue" not in tables:
            return integrity, None
        version = None
        if "membox_queue_meta" in tables:
            version = connection.execute("SELECT value FROM membox_queue_meta WHERE key = 'schema_version'").fetchall()
        return integrity, (version, connection.execute(LOOK).fetchall())
    except sqlite3.DatabaseError as error:
        return f"{error}", None
    finally:
        connection.close()


class Trials:
    """All trials of one verb."""

    def __init__(self, name: str, disk: Disk, folder: Path) -> None:
        self.name, self.verb, self.disk, self.folder = name, VERBS[name], disk, folder
        self.made = 0
        self.count = 0
        self.wrong: list[str] = []
        self.template = folder / "template"
        self.template.mkdir()
        self.verb.make(self.template / NAME)
        self.before = look(self.fresh())[1]
        self.once, self.twice = self.without_fault(1), self.without_fault(2)
        path = self.fresh()
        and_die(lambda: self.verb.begin(path))
        # What a file holds when the verb is about to begin.
        self.begun = look(path)[1]

    def fresh(self) -> Path:
        """A file of its own for one trial."""
        self.made += 1
        place = self.folder / str(self.made)
        shutil.copytree(self.template, place)
        self.disk.watch(place)
        return place / NAME

    def without_fault(self, times: int) -> Any:
        path = self.fresh()
        held = self.verb.begin(path)
        os.access(BEGIN, os.F_OK)
        self.disk.arm(Fault.NONE)
        self.verb.act(held)
        calls = self.disk.trace()
        os.access(END, os.F_OK)
        if times == 1:
            self.calls = calls
        else:
            self.verb.act(held)
        self.verb.end(held)
        integrity, left = look(path)
        assert integrity == "ok"
        return left

    def faults(self, step: int) -> Iterator[tuple[Fault, int, int]]:
        for call in range(1, len(self.calls) + 1, step):
            for code in ERRORS:
                yield Fault.FAIL, code, call
            for code in LASTING:
                yield Fault.FAIL_FROM_HERE, code, call
            if self.calls[call - 1] == "pwrite":
                yield Fault.SHORT, 0, call

    def deaths(self, step: int) -> Iterator[tuple[Fault, int, int]]:
        for call in range(1, len(self.calls) + 1, step):
            yield Fault.DIE, 0, call
            if self.calls[call - 1] == "pwrite":
                yield Fault.TEAR, 0, call

    def expect(self, what: bool, complaint: str) -> None:
        if not what:
            self.wrong.append(f"{self.name}, {self.trial}: {complaint}")

    def error(self, fault: Fault, code: int, call: int) -> None:
        """The verb meets an error; it says so in words of ours, and works when the fault is gone."""
        self.begin_trial(fault, code, call)
        path = self.fresh()
        held = self.verb.begin(path)
        self.disk.arm(fault, code, call)
        said, met = self.attempt(held)
        self.disk.disarm()
        self.check(copied(path), said, f"said {met!r}")
        again, late = self.attempt(held)
        self.expect(again, f"did not work again: {late!r} after {met!r}")
        self.verb.end(held)
        integrity, left = look(path)
        self.expect(integrity == "ok", integrity)
        self.expect(left in ([self.twice] if said else [self.once, self.twice]), f"left {left} in the end")
        shutil.rmtree(path.parent)

    def check(self, path: Path, said: bool, how: str) -> None:
        """What was acknowledged is there; what was not is there as a whole, or not at all."""
        integrity, left = look(path)
        self.expect(integrity == "ok", integrity)
        self.expect(left in ([self.once] if said else [self.before, self.begun, self.once]), f"{how}, left {left}")

    def attempt(self, held: Any) -> tuple[bool, BaseException | None]:
        try:
            self.verb.act(held)
        except TYPED as error:
            return False, error
        except BaseException as error:
            self.expect(False, f"raised {error!r}")
            return False, error
        return True, None

    def death(self, fault: Fault, code: int, call: int) -> None:
        """The process dies at a call; what it had acknowledged is there, and the file goes on working."""
        self.begin_trial(fault, code, call)
        path = self.fresh()
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            held = self.verb.begin(path)
            self.disk.arm(fault, code, call)
            self.verb.act(held)
            os.write(writing, b"!")
            os._exit(0)
        os.close(writing)
        said = os.read(reading, 1) == b"!"
        os.close(reading)
        os.waitpid(pid, 0)
        self.check(copied(path), said, f"said {said}")
        with queue(path) as opened:
            qid = opened.enqueue("after")
            while item := opened.claim():
                self.expect(opened.mark_done(item), "an item of a dead process cannot be finished")
            self.expect(opened.get(qid).status == "done", "the file does not go on working")
        self.expect(look(path)[0] == "ok", "damaged after going on")
        shutil.rmtree(path.parent)

    def begin_trial(self, fault: Fault, code: int, call: int) -> None:
        self.count += 1
        name = self.calls[call - 1]
        self.trial = f"{fault.name} {errno.errorcode.get(code, '')} at call {call}, {name}"


def copied(path: Path) -> Path:
    """A copy of what a process would leave that died now; looking at it does not mend the original."""
    copy = path.parent / "copy"
    copy.mkdir()
    for file in path.parent.iterdir():
        if file.is_file():
            shutil.copy(file, copy)
    return copy / NAME


def shared(disk: Disk, folder: Path, step: int) -> dict[str, Any]:
    """Threads that share commits meet an error at some call; whoever was told of success finds the item."""
    trials, wrong = 0, []
    for call in range(1, 60, step):
        for fault, code in [(Fault.FAIL, errno.EIO), (Fault.FAIL, errno.ENOSPC), (Fault.FAIL_FROM_HERE, errno.EIO)]:
            trials += 1
            place = folder / f"shared{trials}"
            place.mkdir()
            disk.watch(place)
            answers: dict[str, Any] = {}

            def put(number: int, opened: Queue, answers: dict[str, Any] = answers) -> None:
                for turn in range(3):
                    name = f"{number}-{turn}"
                    try:
                        answers[name] = opened.enqueue(name)
                    except TYPED as error:
                        answers[name] = error

            with queue(place / NAME) as opened:
                threads = [threading.Thread(target=put, args=(number, opened)) for number in range(THREADS)]
                disk.arm(fault, code, call)
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                disk.disarm()
                answers["again"] = opened.enqueue("again")
            integrity, (_, rows) = look(place / NAME)
            found = {content: id for id, content, *_ in rows}
            acknowledged = {name: id for name, id in answers.items() if isinstance(id, int)}
            lost = {name for name, id in acknowledged.items() if found.get(name) != id}
            if integrity != "ok" or lost or len(answers) != 3 * THREADS + 1 or len(found) != len(rows):
                wrong.append(f"{fault.name} {code} at call {call}: {integrity}, lost {lost}, {answers}")
            shutil.rmtree(place)
    return {"calls": 0, "trials": trials, "wrong": wrong}


def main(kind: str, name: str, step: int) -> Any:
    disk = Disk()
    with memory_folder() as folder:
        if name == "shared":
            return shared(disk, Path(folder), step)
        trials = Trials(name, disk, Path(folder))
        if kind == "calls":
            return trials.calls
        trial, faults = {"death": (trials.death, trials.deaths), "error": (trials.error, trials.faults)}[kind]
        for fault in faults(step):
            trial(*fault)
        return {"calls": len(trials.calls), "trials": trials.count, "wrong": trials.wrong}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
