"""Workers of membox's drop-in in other processes: killed, interrupted, spawned."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
from membox_queue import Queue
from membox_queue.membox import (
    drain_queue,
    spawn_worker,
)
from programs import PROGRAMS

from sqlite.membox_store import Agent, lease_of, put_lease


def test_a_killed_worker_is_replaced_at_once_and_its_item_counted_as_lost(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    assert store.worker_is_alive()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    worker.kill()
    worker.wait()
    assert not store.worker_is_alive()
    assert drain_queue(Agent(store)) == {"done": 1, "failed": 0, "retried": 0}
    assert store.sql("SELECT retries FROM ingest_queue") == [(1,)]


def test_a_document_that_kills_its_workers_ends_as_failed(store, start):
    store.enqueue_ingest("hang")
    for _ in range(3):
        worker = start(PROGRAMS / "membox_worker.py", store.db_path)
        assert worker.stdout.readline() == "begun hang\n"
        worker.kill()
        worker.wait()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert "vanished" in store.recent_failures()[0]["error"]


def test_what_a_killed_worker_held_is_judged_by_what_others_have_configured_since(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    with Queue(store.db_path) as other:
        other.configure(max_retries=1)
    worker.kill()
    worker.wait()
    assert drain_queue(Agent(store)) == {"done": 0, "failed": 0, "retried": 0}
    assert store.queue_counts() == {"pending": 0, "processing": 0, "done": 0, "failed": 1}


def test_ctrl_c_ends_a_worker_that_is_handling_an_item(store, start):
    store.enqueue_ingest("hang")
    worker = start(PROGRAMS / "membox_worker.py", store.db_path)
    assert worker.stdout.readline() == "begun hang\n"
    worker.send_signal(signal.SIGINT)
    assert worker.wait(60) != 0
    assert lease_of(store) is None
    assert store.queue_counts() == {"pending": 1, "processing": 0, "done": 0, "failed": 0}


def test_a_worker_is_spawned_once_as_membox_process(store, tmp_path, until, monkeypatch):
    package = tmp_path / "site" / "membox"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        (PROGRAMS / "membox_worker.py").read_text().replace("sys.argv[1]", "sys.argv[sys.argv.index('--db') + 1]")
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    store.enqueue_ingest("a")
    assert spawn_worker(store.db_path) is True
    until(lambda: store.queue_counts()["done"])
    until(lambda: "ended" in (tmp_path / "memory.db.worker.log").read_text())
    put_lease(store)
    assert spawn_worker(store.db_path) is False


def test_spawners_at_the_same_moment_start_one_worker(store, tmp_path, until):
    program = tmp_path / "worker.py"
    shutil.copy(PROGRAMS / "membox_worker.py", program)
    store.enqueue_ingest("hang")
    started = tmp_path / "started"
    command = ["/bin/sh", "-c", f"echo $$ >> {started}; exec sleep 60"]
    try:
        assert [spawn_worker(store.db_path, command=command) for _ in range(5)] == [True] + [False] * 4
        until(lambda: started.exists() and started.read_text().endswith("\n"))
        assert len(started.read_text().split()) == 1
    finally:
        for pid in started.read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def test_a_worker_needs_a_file():
    with pytest.raises(ValueError, match="in-memory"):
        spawn_worker(":memory:")


def test_importing_the_module_does_not_import_the_command_line():
    program = "import sys, membox_queue.membox; print('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"
