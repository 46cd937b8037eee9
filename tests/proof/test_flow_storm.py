"""Random verbs of two processes on items that wait for each other; afterwards every item is where the rule puts it."""

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest
from membox_queue import Queue
from programs import PROGRAMS

SEEDS = range(int(os.environ.get("MEMBOX_QUEUE_STORMS", "3")))
UNFINISHED = ("pending", "processing", "blocked")


def settled(path):
    """Work off what is left: claims find it, and claim nothing of a paused queue."""
    with Queue(path, "a") as queue, Queue(path, "b") as other:
        for each in (queue, other):
            each.pause()
        for _ in range(1000):
            assert queue.claim() is other.claim() is None
            with closing(sqlite3.connect(path)) as connection:
                if connection.execute("SELECT count(*) FROM membox_queue_awaited").fetchone() == (0,):
                    return
    raise AssertionError("there is always more to look at")


def check(path):
    """Compare every item with what its dependencies say."""
    with closing(sqlite3.connect(path)) as connection:
        items = dict(connection.execute("SELECT id, status FROM ingest_queue"))
        because = dict(connection.execute("SELECT id, because FROM ingest_queue WHERE because IS NOT NULL"))
        edges = {}
        for item, needs, if_failed, state in connection.execute(
            "SELECT item, needs, if_failed, state FROM membox_queue_after"
        ):
            edges.setdefault(item, []).append((needs, if_failed, state))
        for id, waits in edges.items():
            assert id in items, "a removed item has no dependencies"
            found = [(items.get(needs, "gone"), if_failed, state) for needs, if_failed, state in waits]
            for status, if_failed, state in found:
                if status in UNFINISHED:
                    assert state == 0 or (state == 1 and if_failed == "run"), (id, found)
                elif status == "done" or if_failed == "run":
                    assert state == 1, (id, found)
                else:
                    assert state == 2 or (state == 1 and status == "gone"), (id, found)
            states = {state for _, _, state in found}
            if items[id] in ("pending", "processing"):
                assert states == {1}, (id, found)
            elif items[id] == "blocked":
                assert 0 in states, (id, found)
                assert 2 not in states, (id, found)
            elif id in because:
                assert items[id] == "cancelled", (id, found)
                assert 2 in states, (id, found)
        counted = connection.execute("SELECT queue, status, count(*) FROM ingest_queue GROUP BY 1, 2").fetchall()
        expected = Counter()
        for queue, status, count in counted:
            expected[queue, "active" if status in ("pending", "processing") else status] += count
        for (queue, column), count in expected.items():
            kept = connection.execute(f"SELECT {column} FROM membox_queue_counts WHERE queue = ?", (queue,)).fetchone()
            assert kept == (count,), (queue, column)
        groups = connection.execute(
            """SELECT queue, group_key, sum(status = 'pending'), sum(status = 'processing') FROM ingest_queue
                WHERE group_key IS NOT NULL AND status IN ('pending', 'processing') GROUP BY 1, 2"""
        ).fetchall()
        assert groups == connection.execute("SELECT * FROM membox_queue_groups ORDER BY 1, 2").fetchall()
        return len(edges)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_of_verbs_every_item_is_where_its_dependencies_put_it(tmp_path, seed):
    path = tmp_path / "storm.db"
    Queue(path, "a").close()
    command = [sys.executable, PROGRAMS / "flow_storm.py", path]
    processes = [subprocess.Popen([*command, str(2 * seed + half), "250"]) for half in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    settled(path)
    assert check(path) > 0
    for name in "ab":
        with Queue(path, name) as queue:
            queue.resume()
    for _ in range(50):
        for name in "ab":
            with Queue(path, name, durability="normal") as queue:
                queue.drain(lambda item: [None if need is None else need.status for need in item.after])
    settled(path)
    check(path)
    with Queue(path, "a") as queue, Queue(path, "b") as other:
        assert queue.counts()["blocked"] == other.counts()["blocked"] == 0, "nothing waits for ever"
