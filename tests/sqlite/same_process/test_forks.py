"""Queues across fork, with the measures and, to show what they are for, without."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from membox_queue import Queue, Retry

from sqlite.same_process.running import HERE, look, run

if TYPE_CHECKING:
    from pathlib import Path


def test_an_inherited_queue_works_in_both_but_claims_and_leases_stay_with_the_parent(tmp_path: Path) -> None:
    left = run("forks", "inherited", tmp_path / "app.db", "--rounds", "40")
    assert left.said["code"] == 0, left.stderr
    assert left.is_whole, left
    assert left.said["parent_can_finish"]
    assert left.said["lease"]


def test_a_queue_opened_in_the_child_holds_locks_of_its_own(tmp_path: Path) -> None:
    left = run("forks", "opened", tmp_path / "app.db", "--rounds", "40")
    assert left.said["code"] == -signal.SIGKILL, left.stderr
    assert left.said["locks"] > 0
    assert left.is_whole, left


@pytest.mark.parametrize("count", [pytest.param(40, id="short"), pytest.param(400, id="long", marks=pytest.mark.proof)])
@pytest.mark.timeout(900)
def test_forks_while_other_threads_commit_and_open_leave_both_sides_healthy(tmp_path: Path, count: int) -> None:
    left = run("forks", "storm", tmp_path / "app.db", "--rounds", str(count))
    assert left.said["bad"] == [], left.stderr
    assert left.is_whole, left


def test_multiprocessing_takes_a_queue_along_however_it_starts_its_processes(tmp_path: Path) -> None:
    left = run("forks", "methods", tmp_path / "app.db", "--rounds", "20")
    assert left.said["codes"] == {"fork": [0, 0], "spawn": [0, 0], "forkserver": [0, 0]}, left.stderr
    assert left.is_whole, left


def test_a_server_may_open_the_queue_before_it_forks_its_workers(tmp_path: Path) -> None:
    left = run("forks", "preload", tmp_path / "app.db", "--rounds", "200")
    assert left.said["codes"] == [0, 0, 0, 0], left.stderr
    assert left.said["counts"]["done"] == 200
    assert left.is_whole, left


def test_a_signal_handler_may_fork_while_a_claim_waits_and_the_child_waits_on(tmp_path: Path) -> None:
    left = run("forks", "waits", tmp_path / "app.db", "--rounds", "5")
    assert left.said.get("codes") == [0] * 5, left.stderr
    assert left.said["counts"]["done"] == 6
    assert left.is_whole, left


def test_a_signal_handler_may_fork_while_a_call_waits_for_another_writer(tmp_path: Path) -> None:
    left = run("forks", "busy", tmp_path / "app.db", "--rounds", "3")
    assert left.said.get("codes") == [0] * 3, left.stderr
    assert left.is_whole, left


def test_subprocesses_inherit_nothing(tmp_path: Path) -> None:
    assert run("forks", "subprocesses", tmp_path / "app.db").said == {"inherited": []}


def write_after_killing_the_parent(path: Path, *options: str) -> float:
    """Kill a writing parent whose forked child lives on; returns how long the next writer waited, in seconds."""
    command = [sys.executable, str(HERE / "forks.py"), "killed", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = json.loads(parent.stdout.readline())["child"]
        try:
            wait_for_a_transaction(path)
            parent.kill()
            parent.wait()
            started = time.monotonic()
            with Queue(path, "next", busy_timeout=5.0) as queue:
                queue.enqueue("next")
            return time.monotonic() - started
        finally:
            os.kill(child, signal.SIGKILL)


def wait_for_a_transaction(path: Path) -> None:
    """Return when the parent holds the write lock, which it lets go of only for moments."""
    probe = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "while True:\n"
        "    try:\n"
        "        connection.execute('BEGIN IMMEDIATE'); connection.execute('ROLLBACK')\n"
        "    except sqlite3.OperationalError:\n"
        "        break\n"
    )
    subprocess.run([sys.executable, "-c", probe, str(path)], check=True, timeout=60)


def test_a_parent_killed_in_mid_transaction_leaves_no_lock_to_its_child(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    write_after_killing_the_parent(path)
    assert look(path)["integrity"] == "ok"


def test_without_the_measures_a_child_keeps_its_dead_parents_lock(tmp_path: Path) -> None:
    from membox_queue import QueueBusyError

    with pytest.raises(QueueBusyError):
        write_after_killing_the_parent(tmp_path / "app.db", "--off", "fork")


@pytest.mark.parametrize("scenario", ["inherited", "opened", "preload"])
def test_without_the_measures_each_of_them_does_harm(tmp_path: Path, scenario: str) -> None:
    off = ("--off", "fork", "--off", "commit-check")
    left = run("forks", scenario, tmp_path / "app.db", "--rounds", "200", *off)
    healthy = left.said.get("codes", [left.said.get("code")])
    assert not left.is_whole or any(code not in (0, -signal.SIGKILL) for code in healthy), left


def test_a_queue_pickles_to_its_path_and_options(tmp_path: Path) -> None:
    options = {"lease": 5.0, "retry": Retry(max=7, base=1, kind="linear"), "max_retries": 9, "worker": "me"}
    with Queue(tmp_path / "app.db", "mail", durability="normal", **options) as queue:
        queue.enqueue("x")
        with pickle.loads(pickle.dumps(queue)) as copy:
            assert (copy.path, copy.name, copy.options) == (queue.path, "mail", queue.options)
            assert copy.claim().content == "x"


def test_an_in_memory_queue_does_not_pickle() -> None:
    with Queue(":memory:") as queue, pytest.raises(TypeError, match="in-memory"):
        pickle.dumps(queue)
