"""The total-queue check: a ledger and the items that were left, compared."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from membox_queue import Queue

from proof.documents import uid_of

if TYPE_CHECKING:
    from pathlib import Path

    from proof.ledger import Operation

CEILING = 3
"""The queue's own `max_retries`."""

ENDINGS = ("mark_done", "mark_done_many", "handle", "with")
"""What may make an item done."""


@dataclass
class Findings:
    """What was counted, and what must not be: each line of `wrong` names one violation."""

    acknowledged: int = 0
    recovered: int = 0
    done: int = 0
    failed: int = 0
    accepted: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        for name in ("acknowledged", "recovered", "done", "failed", "accepted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wrong += other.wrong


def left(path: Path) -> tuple[list[Any], list[str], list[str]]:
    """The items of a file, the notes of the stranger, and what the integrity check says."""
    items: list[Any] = []
    with Queue(path) as queue:
        while page := queue.items(limit=500, after=items[-1].id if items else None):
            items += page
    connection = sqlite3.connect(path)
    there = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
    notes = [uid for (uid,) in connection.execute("SELECT uid FROM notes")] if there else []
    integrity = [line for (line,) in connection.execute("PRAGMA integrity_check")]
    connection.close()
    return items, notes, integrity


def check(operations: list[Operation], items: list[Any], notes: list[str], integrity: list[str]) -> Findings:
    found = Findings()
    if integrity != ["ok"]:
        found.wrong.append(f"the file is damaged: {integrity[:3]}")
    found.wrong += [f"{one.op} raised {one.raised}" for one in operations if one.raised]
    _enqueues(found, operations, Counter(uid_of(item.content) for item in items), notes)
    _endings(found, operations, {item.id: item for item in items})
    _holders(found, operations)
    return found


def _enqueues(found: Findings, operations: list[Operation], there: Counter[str | None], notes: list[str]) -> None:
    """Everything acknowledged is there once; what was not attempted is not; a batch came whole or not at all."""
    if there.pop(None, 0):
        found.wrong.append("altered: an item is not as it was enqueued")
    expected = set[str]()
    noted = Counter(notes)
    for one in operations:
        uids = one.about.get("uids", ())
        if one.verb not in ("enqueue", "roll back") or not uids:
            continue
        landed = [there[uid] for uid in uids]
        found.wrong += [f"doubled: {uid} was enqueued once and is there twice" for uid in uids if there[uid] > 1]
        if len(set(map(bool, landed))) > 1:
            found.wrong.append(f"torn: a part of the batch {one.op} is there")
        if one.about.get("note") and [noted[uid] for uid in uids] != landed:
            found.wrong.append(f"torn: {one.op} wrote a note and an item in one transaction")
        if one.verb == "roll back":
            continue
        expected.update(uids)
        if one.known:
            found.acknowledged += len(uids)
            found.wrong += [f"lost: {uid} was acknowledged and is gone" for uid in uids if not there[uid]]
        else:
            found.recovered += sum(landed)
    found.wrong += [f"unexpected: {uid}" for uid in there if there[uid] and uid not in expected]


def _endings(found: Findings, operations: list[Operation], items: dict[int, Any]) -> None:
    """Every item came to rest; a done one by exactly one accepted call, whose receipt and result the row bears."""
    possible: dict[tuple[int, int], list[Operation]] = defaultdict(list)
    accepted: dict[int, list[tuple[int, Operation]]] = defaultdict(list)
    for one in operations:
        if one.verb not in ENDINGS:
            continue
        receipts = [(qid, attempt) for qid, attempt in one.about["receipts"]]
        everything = one.known and one.outcome in (True, len(receipts))
        for qid, attempt in receipts:
            if not one.known or one.outcome:
                possible[qid, attempt].append(one)
            if one.verb in ("mark_done", "mark_done_many") and everything:
                accepted[qid].append((attempt, one))
    for qid, calls in accepted.items():
        found.accepted += len(calls)
        if len(calls) > 1:
            found.wrong.append(f"done twice: item {qid} by {[one.op for _, one in calls]}")
        attempt, one = calls[0]
        item = items.get(qid)
        if item is None or (item.status, item.attempt) != ("done", attempt):
            found.wrong.append(f"undone: {one.op} was accepted for item {qid}, attempt {attempt}")
        elif one.verb == "mark_done" and item.result != {"op": one.op}:
            found.wrong.append(f"overwritten: item {qid} was finished by {one.op} and bears {item.result}")
    for item in items.values():
        if item.status == "done":
            found.done += 1
            if not any(_could_have_written(one, item.result) for one in possible[item.id, item.attempt]):
                found.wrong.append(f"done by nobody: item {item.id}, attempt {item.attempt}, result {item.result}")
        elif item.status == "failed":
            found.failed += 1
            lost = "vanished" in item.error
            if lost and item.retries != (item.max_retries or CEILING):
                found.wrong.append(f"given up too early or too late: item {item.id} after {item.retries} losses")
        else:
            found.wrong.append(f"stuck: item {item.id} is {item.status}")


def _could_have_written(one: Operation, result: Any) -> bool:
    return result == ({"op": one.op} if one.verb in ("mark_done", "handle") else None)


def _holders(found: Findings, operations: list[Operation]) -> None:
    """No receipt was given to two, and nobody got an item after it was done."""
    holders: dict[tuple[int, int], list[str]] = defaultdict(list)
    finished: dict[int, int] = {}
    for one in operations:
        if one.verb == "mark_done" and one.known and one.outcome:
            finished[one.about["receipts"][0][0]] = one.end or 0
    for one in operations:
        given = (
            one.outcome if one.verb == "claim" and one.known else one.about["receipts"] if one.verb == "handle" else []
        )
        for qid, attempt in given:
            holders[qid, attempt].append(one.op)
            # A handler begins some time after its claim, so only a claim's own start can be held against it.
            if one.verb == "claim" and one.start > finished.get(qid, one.start):
                found.wrong.append(f"revived: item {qid} was claimed by {one.op} after it was done")
    for (qid, attempt), ops in holders.items():
        if len(ops) > 1:
            found.wrong.append(f"two holders: item {qid}, attempt {attempt}: {ops}")
