"""Typed handlers: what is stored, and handlers that a module registers on a file."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from membox_queue import Queue
from programs import PROGRAMS

NOW = datetime(2026, 11, 16, 10, 30, tzinfo=UTC)


@pytest.fixture
def send(queue):
    queue.sent = []

    @queue.handler
    def send(to: str, body: str = "hello", *, at: datetime | None = None) -> int:
        """Send it."""
        queue.sent.append((to, body, at))
        return len(queue.sent)

    return send


def test_what_is_stored_is_a_readable_object_of_what_was_given(queue, send, path, sql):
    send.enqueue("ann", at=NOW)
    stored = json.loads(sql(path, "SELECT content FROM ingest_queue")[0][0])
    assert stored == {"to": "ann", "at": "2026-11-16T10:30:00+00:00"}
    assert queue.get(1).content == stored


def test_options_may_name_the_connection_of_the_caller(queue, send, path):
    later = send.options(delay=60, key="k").enqueue("later")
    first = send.options(priority=5, group="g", headers={"from": "me"}).enqueue("first")
    connection = sqlite3.connect(path)
    with connection:
        own = send.options(connection=connection).enqueue("own")
    connection.close()
    assert queue.get(key="k").id == later
    assert (queue.get(first).group, queue.get(first).headers) == ("g", {"from": "me"})
    assert queue.get(own).content == {"to": "own"}
    queue.drain()
    assert [to for to, _, _ in queue.sent] == ["first", "own"]


@pytest.mark.parametrize("name", ["queue", "send"])
def test_the_command_serves_a_handler_where_it_was_registered(tmp_path, name):
    shutil.copy(PROGRAMS / "registered_app.py", tmp_path / "registered_app.py")
    with Queue(tmp_path / "own.db", "emails") as queue:
        queue.enqueue({"to": "ann"})
        command = [sys.executable, "-m", "membox_queue", "process", f"registered_app:{name}"]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        assert queue.get(1).result == "ANN"
    with Queue(tmp_path / "other.db") as queue:
        queue.enqueue({"to": "ben"})
        command += ["--db", "other.db", "--queue", "ingest"]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        assert queue.get(1).result == "BEN"


@pytest.mark.parametrize("name", ["queue", "send"])
def test_the_command_awaits_a_registered_coroutine_function(tmp_path, name):
    shutil.copy(PROGRAMS / "awaited_app.py", tmp_path / "awaited_app.py")
    with Queue(tmp_path / "own.db", "emails") as queue:
        queue.enqueue({"to": "ann"})
        command = [sys.executable, "-m", "membox_queue", "process", f"awaited_app:{name}"]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        assert queue.get(1).result == "ANN"


def test_the_command_says_what_it_cannot_serve(tmp_path):
    shutil.copy(PROGRAMS / "awaited_app.py", tmp_path / "awaited_app.py")
    command = [sys.executable, "-m", "membox_queue", "process", "awaited_app:odd", "--db", "x.db"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "complex" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_registered_handler_can_be_spawned_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(PROGRAMS / "registered_app.py", tmp_path / "spawned_app.py")
    monkeypatch.syspath_prepend(tmp_path)
    import spawned_app

    with spawned_app.queue:
        qid = spawned_app.send.enqueue("ann")
        assert spawned_app.send.queue.spawn_worker(spawned_app.send, linger=0)
        assert spawned_app.send.queue.wait(qid, timeout=60).result == "ANN"
