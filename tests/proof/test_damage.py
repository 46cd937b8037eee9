"""Damaged files: no crash, no hang, only errors of ours, no wrong content, no empty file in place of a full one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest
from membox_queue import CorruptDatabaseError, Queue

TESTS = Path(__file__).parents[1]


def run(seed: int, cases: int, folder: Path, limit: float) -> dict:
    command = [sys.executable, "-m", "proof.damage", str(seed), str(cases), str(folder / "damaged")]
    done = subprocess.run(command, cwd=TESTS, stdout=subprocess.PIPE, check=True, timeout=limit)
    return json.loads(done.stdout)


def check(report: dict, cases: int) -> None:
    assert report["faults"] == []
    assert sum(report["kinds"].values()) == cases
    # Otherwise nothing was at stake.
    assert report["opened"] > cases / 2
    assert report["delivered"] > cases
    assert report["errors"]["CorruptDatabaseError"] > 0


@pytest.fixture
def folder(tmp_path):
    """In memory if possible: damage does not wait for a disk."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def test_a_hundred_and_fifty_damaged_files(folder):
    check(run(1, 150, folder, 110), 150)


@pytest.mark.proof
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_thousand_damaged_files(folder, seed):
    check(run(seed, 1000, folder, 7000), 1000)


def separate(path, index, change):
    """Change the table while SQLite does not know of the index."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema = ON")
    row = connection.execute("SELECT * FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
    connection.execute("DELETE FROM sqlite_schema WHERE name = ?", (index,))
    connection.close()
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.execute(change)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    connection.close()


CLAIM = "UPDATE ingest_queue SET status = 'processing', lease_until = 1, lease_ms = 1, claim_token = 1"
DISAGREEMENTS = {
    "ready": ("ingest_queue_ready", "", "UPDATE ingest_queue SET status = 'done'"),
    "expired": ("ingest_queue_leases", CLAIM, "UPDATE ingest_queue SET status = 'done', claim_token = NULL"),
    "gone": ("ingest_queue_ready", "", "DELETE FROM ingest_queue"),
}


@pytest.mark.parametrize("case", DISAGREEMENTS)
@pytest.mark.parametrize("verb", ["claim", "claim_many", "drain"])
def test_an_index_that_disagrees_with_its_table_is_told_and_no_claim_spins(path, sql, start, case, verb):
    index, before, change = DISAGREEMENTS[case]
    with Queue(path) as queue:
        queue.enqueue_many(["x"] * 40)
    if before:
        sql(path, before)
    separate(path, index, change)
    verbs = {"claim": "queue.claim()", "claim_many": "queue.claim_many(9)", "drain": "queue.drain(print)"}
    worker = start(
        "import sys, membox_queue\nqueue = membox_queue.Queue(sys.argv[1])\n"
        f"try: {verbs[verb]}\nexcept membox_queue.CorruptDatabaseError as error: print('said:', error)",
        path,
    )
    said, _ = worker.communicate(timeout=60)
    assert said.startswith("said:"), said
    assert "disagree" in said or "damaged" in said


@pytest.mark.parametrize("verb", ["claim", "drain"])
def test_a_schedule_that_only_its_index_knows_is_told_and_no_claim_spins(path, start, verb):
    with Queue(path) as queue:
        queue.schedule("gone", "tick", every=0.001)
    separate(path, "membox_queue_schedules_next", "DELETE FROM membox_queue_schedules")
    verbs = {"claim": "queue.claim()", "drain": "queue.drain(print)"}
    worker = start(
        "import sys, membox_queue\nqueue = membox_queue.Queue(sys.argv[1])\n"
        f"try: {verbs[verb]}\nexcept membox_queue.CorruptDatabaseError as error: print('said:', error)",
        path,
    )
    said, _ = worker.communicate(timeout=60)
    assert said.startswith("said:"), said


@pytest.mark.timeout(60)
def test_a_claim_of_a_dead_process_that_only_an_index_knows_is_told(path, start):
    with Queue(path) as queue:
        queue.enqueue_many(["held", "ready"])
        holder = start(
            "import sys, membox_queue\nqueue = membox_queue.Queue(sys.argv[1])\n"
            "print(queue.claim(lease=900).id, flush=True)\nsys.stdin.read()",
            path,
        )
        assert holder.stdout.readline() == "1\n"
        # This claim looks for dead processes. The next one, soon after it, does so only if it finds nothing else.
        assert queue.claim().id == 2
        holder.kill()
        holder.wait()
        separate(
            path, "ingest_queue_leases", "UPDATE ingest_queue SET status = 'done', claim_token = NULL WHERE id = 1"
        )
        with pytest.raises(CorruptDatabaseError):
            queue.claim()
