"""Keys on the caller's own connection and in plain SQL."""

import sqlite3
import subprocess
from contextlib import closing

import pytest
from membox_queue import Queue


def test_an_item_cancelled_while_it_runs_does_not_swallow_the_next_one_of_its_key(queue, path):
    queue.enqueue("old", key="k")
    old = queue.claim()
    queue.cancel(old.id)
    with closing(sqlite3.connect(path)) as own, own:
        new = queue.enqueue("new", key="k", connection=own)
    assert new != old.id
    assert queue.enqueue("newer", key="k") == new
    assert queue.claim().id == new
    assert not queue.mark_done(old)
    assert queue.get(old.id).status == "cancelled"
    assert queue.retry(old.id)
    assert queue.claim().content == "old"


def test_plain_sql_cannot_break_the_rule(path, sql):
    with Queue(path) as queue:
        queue.enqueue("x", key="k")
    with pytest.raises(subprocess.CalledProcessError):
        sql(path, "INSERT INTO ingest_queue (content, dedup_key) VALUES ('y', 'k')")
