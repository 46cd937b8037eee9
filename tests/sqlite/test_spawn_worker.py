"""Spawned workers and their file: removed, in memory, in the caller's transaction."""

import shutil
import sqlite3
import threading

import pytest
from membox_queue import Queue
from programs import PROGRAMS


@pytest.fixture(autouse=True)
def handlers(tmp_path, monkeypatch):
    shutil.copy(PROGRAMS / "slow_to_import.py", tmp_path / "slow_to_import.py")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_file_that_was_removed_while_its_worker_lived_stays_removed(path, tmp_path, until):
    with Queue(path) as queue:
        queue.enqueue("x", spawn="slow_to_import:handler")
    until(lambda: (tmp_path / "importing").exists())
    for file in tmp_path.glob("memory.db*"):
        file.unlink()
    (tmp_path / "gate").touch()
    until(lambda: not any(thread.name == "membox-queue-spawned" for thread in threading.enumerate()))
    assert list(tmp_path.glob("memory.db*")) == []


def test_in_the_users_own_transaction_no_worker_can_be_spawned(queue, path):
    connection = sqlite3.connect(path)
    with pytest.raises(ValueError, match="after your commit"), connection:
        queue.enqueue("x", connection=connection, spawn="slow_to_import:handler")
    connection.close()
    assert queue.pending() == 0


def test_a_queue_in_memory_has_no_workers():
    with Queue(":memory:") as queue, pytest.raises(ValueError, match="in-memory"):
        queue.spawn_worker("spawned_handlers:where")
