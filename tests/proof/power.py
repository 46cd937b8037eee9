"""Cuts the power of a disk that is played: after every change, in every way the model allows, each file opened again.

Run with the disk of disk.c loaded: `python -m proof.power SCENARIO OPTIONS`, the options as JSON. Prints JSON: how many
cuts and different states there were, what was wrong, and what was lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from membox_queue import DuplicateItemError, NewItem, Queue, QueueError

from proof import power_model as model
from proof.disk import Disk, memory_folder

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "memory.db"
LONGEST_WAY = 5_000
"""Items that are put at most until the log is started anew."""
# A mark is the number of a step, twice; one more when the step has been acknowledged.
MADE, BEGUN = -1, 0


class Program:
    """Verbs that follow one another on one queue."""

    def __init__(self, path: Path, durability: Any) -> None:
        self.path, self.durability = path, durability
        self.claims: list[Any] = []
        self.turn = 0
        self.open()

    def open(self) -> None:
        self.queue = Queue(self.path, durability=self.durability)

    def content(self) -> str:
        self.turn += 1
        return f"{self.turn} {'x' * 700}"

    def enqueue(self) -> None:
        self.queue.enqueue(self.content())

    def enqueue_many(self) -> None:
        self.queue.enqueue_many([self.content() for _ in range(8)])

    def claim(self) -> None:
        if item := self.queue.claim():
            self.claims.append(item)

    def mark_done(self) -> None:
        if not self.claims:
            self.claim()
        if self.claims:
            self.queue.mark_done(self.claims.pop(), result=self.turn)

    def prune(self) -> None:
        self.queue.prune(older_than=0)

    def fold(self) -> None:
        self.queue.tend()

    def compact(self) -> None:
        self.queue.compact()

    def reopen(self) -> None:
        self.queue.close()
        self.open()


# What each verb promises when it returns: that a power cut does not undo it.
VERBS = {
    "enqueue": True,
    "enqueue_many": True,
    "claim": False,
    "mark_done": True,
    "prune": True,
    "fold": False,
    "compact": True,
    "reopen": True,
}


@dataclass
class Recording:
    """What a program did to its files, and which marks stand for a promise."""

    changes: list[model.Change]
    promises: set[int]
    name: str
    # Marks of items that were acknowledged, where there is no order of steps.
    items: dict[int, str] = field(default_factory=dict)
    # Items that are there together or not at all.
    batches: list[set[int]] = field(default_factory=list)


@dataclass
class Found:
    """What plain SQLite and the library say of one state of the disk."""

    complaint: str | None
    content: str
    items: dict[int, str]


@dataclass
class Report:
    """What all cuts together have shown."""

    programs: int = 0
    cuts: int = 0
    states: int = 0
    lossy: int = 0
    lost_items: int = 0
    restarts: int = 0
    wrong: list[str] = field(default_factory=list)


class Cutter:
    """Cuts the power of recorded programs."""

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        self.folder, self.report = folder, Report()
        self.most = options.get("most", 6)
        self.demands = options.get("demands", "full")
        self.without_syncs = options.get("without_syncs", False)
        self.known: dict[bytes, Found] = {}
        self.told: set[tuple[str, str]] = set()

    def cut(self, recording: Recording, begin: int | None) -> None:
        """Cut the power after every change that follows the mark `begin`, or after every change there is."""
        dice = random.Random(recording.name)
        self.report.programs += 1
        self.known.clear()
        disk = model.Disk()
        history: list[str] = []
        # What was acknowledged last, and how much had happened when its verb began: a verb that changed nothing
        # promises nothing.
        floor = before = 0
        is_begun, has_changed = begin is None, False
        for change in recording.changes:
            if change.what == "S" and self.without_syncs:
                continue
            if change.what == "S" and is_begun and has_changed:
                self.look_at_all(recording, disk, dice, history, floor)
            disk.apply(change)
            has_changed = has_changed or change.what != "M"
            # How a file is made is looked at by itself.
            if begin is None or history or change.what == "M":
                state = self.found(disk.after(disk.all))
                if not history or history[-1] != state.content:
                    history.append(state.content)
            if change.what != "M":
                continue
            if is_begun and has_changed:
                self.look_at_all(recording, disk, dice, history, floor)
                has_changed = False
            is_begun = is_begun or change.offset == begin
            if change.offset in recording.promises and len(history) > before:
                floor = len(history) - 1
            before = len(history)
        self.look_at_all(recording, disk, dice, history, floor)

    def look_at_all(
        self, recording: Recording, disk: model.Disk, dice: random.Random, history: list[str], floor: int
    ) -> None:
        """Every state must be one that once was, and none older than what was acknowledged last."""
        recent = set(history[floor:])
        for kept in disk.cuts(dice, self.most):
            self.report.cuts += 1
            found = self.found(disk.after(kept))
            is_lossy = found.content not in recent
            self.report.lossy += is_lossy
            complaint = found.complaint
            if complaint is None and is_lossy and found.content not in history:
                complaint = "a state that never was"
            if complaint is None and is_lossy and self.demands == "full":
                complaint = "something acknowledged is lost"
            self.complain(recording, complaint, kept)

    def look_for_items(
        self, recording: Recording, disk: model.Disk, dice: random.Random, acknowledged: dict[int, str]
    ) -> None:
        """Every state must have all acknowledged items, and no others than were put."""
        for kept in disk.cuts(dice, self.most):
            self.report.cuts += 1
            found = self.found(disk.after(kept))
            lost = acknowledged.items() - found.items.items()
            strange = found.items.items() - recording.items.items()
            self.report.lossy += bool(lost)
            self.report.lost_items = max(self.report.lost_items, len(lost))
            complaint = found.complaint or (f"strange items {len(strange)}" if strange else None)
            if any(0 < len(batch & found.items.keys()) < len(batch) for batch in recording.batches):
                complaint = complaint or "half a batch"
            if complaint is None and lost and self.demands == "full":
                complaint = f"{len(lost)} of {len(acknowledged)} acknowledged items are lost"
            self.complain(recording, complaint, kept)

    def complain(self, recording: Recording, complaint: str | None, kept: model.Choice) -> None:
        """Tell what is wrong with a program once; what was kept helps to find out why."""
        if complaint and (recording.name, complaint) not in self.told:
            self.told.add((recording.name, complaint))
            parts = [(part.what, part.file) for parts in kept for part in parts]
            self.report.wrong.append(f"{recording.name}: {complaint}; kept {parts}")

    def found(self, files: dict[str, bytes]) -> Found:
        digest = hashlib.sha256()
        for name, content in sorted(files.items()):
            digest.update(f"{name} {len(content)} ".encode() + content)
        key = digest.digest()
        if key not in self.known:
            self.report.states += 1
            self.known[key] = self.open(files)
        return self.known[key]

    def open(self, files: dict[str, bytes]) -> Found:
        """Let plain SQLite look first; then the library, which must find the same and go on working."""
        place = self.folder / "state"
        place.mkdir()
        try:
            for name, content in files.items():
                (place / name).write_bytes(content)
            copy = shutil.copytree(place, place / "copy")
            # What the shared memory held is lost, and its pages may be anything.
            (copy / f"{NAME}-shm").write_bytes(random.Random(len(files)).randbytes(32768))
            return self.compare(place / NAME, copy / NAME)
        finally:
            shutil.rmtree(place)

    def compare(self, path: Path, copy: Path) -> Found:
        try:
            content, items = look(path)
        except sqlite3.DatabaseError as error:
            return Found(f"damaged: {error}", "", {})
        try:
            with Queue(copy) as queue:
                counts = queue.counts()
                mine = {item.id: item.content for item in queue.items(limit=5000)}
                queue.enqueue("after")
        except QueueError as error:
            return Found(f"the library refuses it: {error}", content, items)
        if content and mine != items:
            return Found("the library finds other items than plain SQLite", content, items)
        if sum(counts.values()) != len(mine):
            return Found(f"the counts are wrong: {counts} of {len(mine)}", content, items)
        return Found(None, content, items)


def look(path: Path) -> tuple[str, dict[int, str]]:
    """Everything a file holds, as one text, and its items."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    try:
        if (integrity := connection.execute("PRAGMA integrity_check(1)").fetchone()[0]) != b"ok":
            raise sqlite3.DatabaseError(integrity)
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        tables = [name.decode() for (name,) in connection.execute(query)]
        rows = [(table, sorted(map(repr, connection.execute(f"SELECT * FROM {table}")))) for table in tables]
        items = {}
        if "ingest_queue" in tables:
            found = connection.execute("SELECT id, content FROM ingest_queue")
            items = {id: content.decode() for id, content in found}
        return hashlib.sha256(repr(rows).encode()).hexdigest() if rows else "", items
    finally:
        connection.close()


def record(disk: Disk, folder: Path, program: Callable[[Path], None]) -> list[model.Change]:
    """Run a program in a directory of its own; what it did there."""
    place = folder / "live"
    place.mkdir()
    descriptor = os.memfd_create("record")
    disk.watch(place)
    disk.record(descriptor)
    try:
        program(place / NAME)
    finally:
        disk.record(-1)
        shutil.rmtree(place)
    with open(descriptor, "rb") as file:
        file.seek(0)
        return model.read(file.read())


def follow(disk: Disk, folder: Path, verbs: tuple[str, ...], durability: str) -> Recording:
    """Record verbs one after the other, each between two marks."""

    def program(path: Path) -> None:
        running = Program(path, durability)
        disk.mark(MADE)
        running.queue.enqueue_many(["first", "second"])
        disk.mark(BEGUN)
        for step, verb in enumerate(verbs, 1):
            disk.mark(2 * step)
            getattr(running, verb)()
            disk.mark(2 * step + 1)
        disk.record(-1)
        running.queue.close()

    promises = {BEGUN} | {2 * step + 1 for step, verb in enumerate(verbs, 1) if VERBS[verb]}
    return Recording(record(disk, folder, program), promises, "-".join(verbs) or "create")


def sequences(disk: Disk, folder: Path, cutter: Cutter, options: dict[str, Any]) -> None:
    """All sequences of so many verbs; of each, the power is cut during the last verb."""
    chosen = [verbs for length in range(1, options["length"] + 1) for verbs in itertools.product(VERBS, repeat=length)]
    for verbs in chosen[options.get("first", 0) :: options.get("step", 1)]:
        cutter.cut(follow(disk, folder, verbs, options.get("durability", "full")), 2 * len(verbs))


def failed_syncs(disk: Disk, folder: Path, cutter: Cutter, options: dict[str, Any]) -> None:
    """Every sync of every verb fails once, behind a claim that no sync has reached; what is acknowledged next lasts."""
    # SQLite does not tell when a sync fails in a close.
    for verb in options.get("verbs", [verb for verb in VERBS if verb != "reopen"]):
        for sync in itertools.count(1):
            recording = follow_failure(disk, folder, verb, sync, beside_a_reader=options.get("reader", False))
            if all(change.what != "F" for change in recording.changes):
                break
            cutter.cut(recording, 2)


def follow_failure(disk: Disk, folder: Path, verb: str, sync: int, *, beside_a_reader: bool) -> Recording:
    """Record a verb whose sync of this number fails, and an item put after it."""
    readers: list[sqlite3.Connection] = []

    def program(path: Path) -> None:
        running = Program(path, "full")
        running.queue.enqueue_many(["first", "second", "third"])
        # What follows stands in a log of its own, which nothing before it mends.
        running.fold()
        disk.mark(BEGUN)
        if beside_a_reader:
            # Until it ends, the log cannot start anew.
            reader = sqlite3.connect(path, isolation_level=None)
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM ingest_queue").fetchone()
            readers.append(reader)
        running.claim()
        disk.mark(2)
        disk.arm_sync(sync)
        with contextlib.suppress(QueueError):
            getattr(running, verb)()
        disk.disarm()
        disk.mark(4)
        running.enqueue()
        disk.mark(5)
        disk.record(-1)
        for reader in readers:
            reader.close()
        running.queue.close()

    return Recording(record(disk, folder, program), {BEGUN, 5}, f"{verb}, sync {sync} fails")


def creation(disk: Disk, folder: Path, cutter: Cutter, options: dict[str, Any]) -> None:
    """A new file, from the first system call on."""
    cutter.cut(follow(disk, folder, (), "full"), None)


def log_number(path: Path) -> bytes:
    """How often the log of a file has been started anew, as its header counts it."""
    with open(f"{path}-wal", "rb") as log:
        return log.read(16)[12:]


def threads(disk: Disk, folder: Path, cutter: Cutter, options: dict[str, Any]) -> None:
    """Threads share commits on small pages, so that the log is folded beside them and starts anew; ends are cut."""
    count, each = options.get("threads", 4), options.get("each", 40)
    for round in range(options.get("rounds", 1)):
        items: dict[int, str] = {}

        def program(path: Path, items: dict[int, str] = items) -> None:
            connection = sqlite3.connect(path)
            connection.executescript("PRAGMA page_size = 512; CREATE TABLE app (x)")
            connection.close()
            with Queue(path, durability=options.get("durability", "full")) as queue:
                begun = log_number(path)

                def put_one(name: str) -> None:
                    content = f"{name} {'x' * 1500}"
                    qid = queue.enqueue(content)
                    items[qid] = content
                    disk.mark(qid)

                def put(number: int) -> None:
                    for turn in range(each):
                        put_one(f"{number}-{turn}")

                running = [threading.Thread(target=put, args=(number,)) for number in range(count)]
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
                # It is folded by a thread of its own, which has its own pace.
                for more in range(LONGEST_WAY):
                    if log_number(path) != begun:
                        break
                    put_one(f"more-{more}")
                disk.record(-1)

        changes = record(disk, folder, program)
        assert len(items) >= count * each
        logs = {change.file for change in changes if change.what == "C" and change.name.endswith("-wal")}
        cutter.report.restarts += (
            sum(change.what == "W" and change.file in logs and change.offset == 0 for change in changes) - 1
        )
        sample(cutter, Recording(changes, set(), f"threads {round}", items), options.get("cuts", 60))


def spills(disk: Disk, folder: Path, cutter: Cutter, options: dict[str, Any]) -> None:
    """Transactions too large for SQLite's cache: pages go to the log before the commit and are written there again, and
    what one that is rolled back left behind is written over by the next.
    """
    items: dict[int, str] = {}
    batches: list[set[int]] = []
    dice = random.Random(1)

    def program(path: Path) -> None:
        with Queue(path) as queue:
            queue.enqueue("kept", key="taken")
            for count, size in [(1, 600_000), (1500, 500), (3, 100)]:
                contents = [f"{len(batches)}-{number} {'x' * size}" for number in range(count)]
                if len(batches) == 1:
                    with pytest.raises(DuplicateItemError):
                        queue.enqueue_many([*contents, NewItem("again", key="taken", on_duplicate="raise")])
                # Long keys in no order: a page of their index is changed again after it went to the log.
                keys = [f"{dice.getrandbits(64):x}" * 50 for _ in contents]
                ids = queue.enqueue_many([NewItem(text, key=key) for text, key in zip(contents, keys, strict=True)])
                batches.append(set(ids))
                items.update(zip(ids, contents, strict=True))
                for qid in ids:
                    disk.mark(qid)
            disk.record(-1)

    changes = record(disk, folder, program)
    kept = {1: "kept"}
    sample(cutter, Recording(changes, set(), "spills", items | kept, batches), options.get("cuts", 60))


def sample(cutter: Cutter, recording: Recording, count: int) -> None:
    """Cut a long recording at moments chosen by lot, most of them right before a sync."""
    dice = random.Random(recording.name)
    places = range(1, len(recording.changes))
    before_syncs = [place for place in places if recording.changes[place].what == "S"]
    moments = set(dice.choices(before_syncs, k=count)) | set(dice.choices(places, k=count // 3))
    disk = model.Disk()
    acknowledged: dict[int, str] = {}
    for place, change in enumerate(recording.changes):
        if place in moments:
            cutter.known.clear()
            cutter.look_for_items(recording, disk, dice, acknowledged)
        disk.apply(change)
        if change.what == "M":
            acknowledged[change.offset] = recording.items[change.offset]


SCENARIOS = {
    "sequences": sequences,
    "creation": creation,
    "threads": threads,
    "spills": spills,
    "failed_syncs": failed_syncs,
}


def main(scenario: str, options: dict[str, Any]) -> dict[str, Any]:
    disk = Disk()
    with memory_folder() as folder:
        cutter = Cutter(Path(folder), options)
        SCENARIOS[scenario](disk, Path(folder), cutter, options)
        return vars(cutter.report)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))))
