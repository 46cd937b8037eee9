"""Settings as the file stores them."""

import contextlib
import json
import sqlite3

import pytest
from membox_queue import (
    CorruptDatabaseError,
    PayloadTooLargeError,
    Queue,
)

DEFAULTS = {
    "lease": 60.0,
    "max_retries": 3,
    "retry": None,
    "max_bytes": 64 * 1024 * 1024,
    "max_pending": None,
    "rate": None,
    "group_rate": None,
    "keep_for": None,
    "keep_last": None,
    "keep_failed_for": None,
    "keep_content": True,
    "group_limit": 1,
}


def settings(queue):
    return {name: value for name, value in queue.options.items() if name in DEFAULTS}


def stored(sql, path, queue="ingest"):
    rows = sql(path, "SELECT value FROM membox_queue_meta WHERE key = ?", f"settings:{queue}")
    return json.loads(rows[0][0]) if rows else None


def test_what_a_newer_version_has_stored_survives(queue, path, sql):
    queue.configure(lease=5)
    text = json.dumps({"lease_ms": 5000, "from_the_future": {"a": [1, None]}})
    sql(path, "UPDATE membox_queue_meta SET value = ? WHERE key = 'settings:ingest'", text)
    queue.configure(max_retries=1)
    queue.configure(lease=None)
    assert stored(sql, path) == {"max_retries": 1, "from_the_future": {"a": [1, None]}}
    with Queue(path) as other:
        assert settings(other) == {**DEFAULTS, "max_retries": 1}


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"lease_ms": "soon"}', '{"rate": {"count": 1}}'])
def test_settings_that_cannot_be_read_are_an_error_that_says_where_they_are(queue, path, sql, text):
    queue.configure(lease=5)
    queue.enqueue_many(["in hand", "x"])
    item = queue.claim()
    sql(path, "UPDATE membox_queue_meta SET value = ? WHERE key = 'settings:ingest'", text)
    with pytest.raises(CorruptDatabaseError, match="settings stored in membox_queue_meta"):
        Queue(path)
    with pytest.raises(CorruptDatabaseError, match="settings stored in membox_queue_meta"):
        queue.claim()
    assert queue.mark_done(item)
    assert queue.counts()["processing"] == 0


def test_a_wrong_setting_stores_nothing(queue, path, sql):
    with pytest.raises(ValueError, match="lease"):
        queue.configure(keep_last=9, lease=0)
    assert stored(sql, path) is None


def test_a_limit_that_was_lowered_since_holds_on_the_connection_of_the_caller(queue, path):
    queue.enqueue("x" * 50)
    with Queue(path) as other:
        other.configure(max_bytes=10)
        with contextlib.closing(sqlite3.connect(path)) as connection, pytest.raises(PayloadTooLargeError):
            queue.enqueue("x" * 50, connection=connection)
        other.configure(max_bytes=11)
        with pytest.raises(PayloadTooLargeError):
            queue.enqueue("x" * 50)


def test_a_queue_in_memory_is_configured_too():
    with Queue(":memory:") as queue:
        queue.configure(lease=5)
        queue.enqueue("x")
        queue.claim()
        assert queue.options["lease"] == 5
