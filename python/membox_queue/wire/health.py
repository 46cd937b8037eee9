"""The health of a file and a queue, as findings and a verdict."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.errors import QueueError
from membox_queue.terminal_text import duration, number, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from membox_queue.queue import Queue

LONG_LOG = 64 << 20
"""A WAL longer than this is not being checkpointed."""
LITTLE_SPACE = 200 << 20
LONG_WAIT = 60.0
"""Seconds after which a pending item should have been claimed."""
LOCK_PATIENCE = 2.0
"""Seconds for which a writer may hold the lock."""
RESET_BUG = ((3, 7, 0), (3, 51, 3))
"""From the first to before the second, SQLite can damage a file when its WAL restarts."""


@dataclass
class Finding:
    """The result of one check: `ok`, a `note`, or `bad`."""

    about: str
    level: str
    words: str


def examine(db: Path, open_queue: Callable[[], Queue]) -> list[Finding]:
    """Check the file and the queue that `open_queue` opens, and the versions in use."""
    try:
        with open_queue() as queue:
            seen = queue.check()
            findings = [*of_file(queue, db, seen), *of_queue(queue, seen)]
    except QueueError as error:
        findings = [Finding("file", "bad", str(error))]
    return [*findings, *of_versions()]


def of_file(queue: Queue, db: Path, seen: dict[str, Any]) -> Iterator[Finding]:
    """Check the file: integrity, size, WAL, locks, disk."""
    faults = seen["faults"]
    if faults:
        yield Finding("integrity", "bad", f"{number(len(faults), 'fault')}: {faults[0]}; restore a backup")
    else:
        yield Finding("integrity", "ok", "no faults found")
    if mended := seen["mended"]:
        listed = f"{', '.join(mended[:3])}{', …' if len(mended) > 3 else ''}"
        words = f"{listed}: missing or altered; opening the file repaired them"
        yield Finding("schema", "note", words)
    spare = f", {size(seen['free_bytes'])} of it free" if seen["free_bytes"] else ""
    yield Finding("file", "ok", f"{size(seen['file_bytes'])}{spare}, schema {seen['schema_version']}")
    log = size(seen["wal_bytes"])
    if seen["wal_bytes"] > LONG_LOG:
        words = f"{log}: a long-running reader keeps the WAL from being truncated; close it, then: membox-queue compact"
        yield Finding("log", "note", words)
    else:
        yield Finding("log", "ok", log)
    if not seen["own_locks"]:
        words = "this file system has no OFD locks: do not use sqlite3 on this file in a process that has a queue open"
        yield Finding("locks", "bad", words)
    elif writer := blocking_writer(queue):
        held = f"{writer} has held the write lock for {duration(LOCK_PATIENCE)}"
        words = f"{held}, so no other process can write; end its transaction"
        yield Finding("locks", "bad", words)
    else:
        yield Finding("locks", "ok", "belong to the open file; no process blocks it")
    free = shutil.disk_usage(db.resolve().parent).free
    yield Finding("disk", "note" if free < LITTLE_SPACE else "ok", f"{size(free)} free")


def blocking_writer(queue: Queue) -> str | None:
    """Return who holds the write lock for longer than LOCK_PATIENCE; None if it is free before."""
    deadline = time.monotonic() + LOCK_PATIENCE
    while writer := queue.check(thorough=False)["writer"]:
        if time.monotonic() >= deadline:
            return str(writer)
        time.sleep(0.05)
    return None


def of_queue(queue: Queue, seen: dict[str, Any]) -> Iterator[Finding]:
    """Check the queue: stuck items, unknown statuses, items that retention keeps, pending and failed items."""
    stats, stuck = queue.stats(), seen["stuck"]
    counts = stats["counts"]
    if stuck:
        words = f"{some(stuck)} held by dead workers; the next claim reclaims them: membox-queue process HANDLER"
        yield Finding("stuck", "bad", words)
    else:
        yield Finding("stuck", "ok", "nothing")
    if unknown := seen["unknown_status"]:
        words = f"{some(unknown)} with an unknown status, which no verb finds; set it to pending, or delete them"
        yield Finding("status", "bad", words)
    for table, ids in seen["kept_by_foreign_keys"].items():
        yield Finding(
            "kept", "note", f"{some(ids)} that retention cannot remove: rows of the table {table} refer to them"
        )
    age = stats["oldest_pending_age"]
    waiting = number(counts["pending"], "item") + (f", the oldest for {duration(age)}" if age is not None else "")
    if stats["paused"]:
        yield Finding("waiting", "note", f"{waiting}; the queue is paused; resume it: membox-queue resume")
    elif age is not None and age > LONG_WAIT and not any(worker.alive for worker in stats["workers"]):
        yield Finding("waiting", "note", f"{waiting}, and no worker; start one: membox-queue process HANDLER")
    else:
        yield Finding("waiting", "ok", waiting)
    failed = number(counts["failed"], "item")
    words = f"{failed}; see: membox-queue failures" if counts["failed"] else "nothing"
    yield Finding("failed", "note" if counts["failed"] else "ok", words)


def some(ids: list[int]) -> str:
    """Return how many items, and the first few ids."""
    return f"{number(len(ids), 'item')} ({', '.join(map(str, ids[:5]))}{', …' if len(ids) > 5 else ''})"


def versions() -> tuple[str, str]:
    """Return the versions of this package and of its SQLite."""
    return _native.__version__, _native.sqlite_version


def of_versions() -> Iterator[Finding]:
    """Report the versions of the package, Python and both copies of SQLite."""
    version, sqlite_version = versions()
    ours = f"membox_queue {version} with SQLite {sqlite_version}, Python {platform.python_version()}"
    yield Finding("versions", "ok", ours)
    first, mended = RESET_BUG
    if first <= sqlite3.sqlite_version_info < mended:
        words = (
            f"Python's own sqlite3 is {sqlite3.sqlite_version}; before 3.51.3 it can, rarely, damage a file in WAL mode"
        )
        yield Finding("sqlite3", "note", words)
    else:
        yield Finding("sqlite3", "ok", f"Python's own is {sqlite3.sqlite_version}")


def verdict(findings: list[Finding]) -> dict[str, Any]:
    """Return the verdict over all findings."""
    bad = [finding.about for finding in findings if finding.level == "bad"]
    notes = [finding.about for finding in findings if finding.level == "note"]
    if bad:
        return {"healthy": False, "verdict": f"unhealthy: {', '.join(bad)}"}
    return {"healthy": True, "verdict": f"healthy; worth a look: {', '.join(notes)}" if notes else "healthy"}
