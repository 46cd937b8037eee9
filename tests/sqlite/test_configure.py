"""Settings as the file stores them."""

import contextlib
import json
import shlex
import sqlite3
import subprocess
import sys

import pytest
from membox_queue import (
    CorruptDatabaseError,
    PayloadTooLargeError,
    Queue,
    QueueBusyError,
    Rate,
    Retry,
    SettingsConflictError,
)
from membox_queue.workers.names import queue_of

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


def test_what_a_queue_is_opened_with_is_stored_without_its_lease(path, sql):
    Queue(path).close()
    assert stored(sql, path) is None
    Queue(path, lease=5, keep_last=2, group_limit=3).close()
    assert stored(sql, path) == {"keep_last": 2}
    assert sql(path, "SELECT value FROM membox_queue_meta WHERE key = 'group_limit:ingest'") == [["3"]]


def test_opening_with_the_settings_that_are_stored_takes_no_write_lock(path, writer):
    given = {"max_retries": 7, "retry": Retry(max=2), "group_limit": 3, "keep_content": False}
    Queue(path, **given).close()
    close_if_idle = writer()
    for settings in (given, {}, {"lease": 5}):
        with Queue(path, busy_timeout=0, **settings) as queue:
            assert queue.get(1) is None
    with pytest.raises(QueueBusyError):
        Queue(path, busy_timeout=0, keep_last=1)
    close_if_idle()
    Queue(path, busy_timeout=0, keep_last=1).close()


def test_a_conflict_prints_a_command_that_resolves_it(path):
    Queue(path, "my mail", retry=Retry(max=2), keep_for=5).close()
    for given in ({"retry": Retry(max=3, base=1.5, kind="linear")}, {"keep_for": 86400.5}):
        with pytest.raises(SettingsConflictError) as refused:
            Queue(path, "my mail", **given)
        command = shlex.split(str(refused.value).partition("command line with: ")[2])
        assert command[:2] == ["membox-queue", "configure"]
        subprocess.run([sys.executable, "-m", "membox_queue", *command[1:]], check=True, stdout=subprocess.DEVNULL)
        Queue(path, "my mail", **given).close()


def test_a_conflict_prints_python_that_resolves_it(path):
    Queue(path, rate=Rate(1)).close()
    with pytest.raises(SettingsConflictError) as refused:
        Queue(path, rate=Rate(2, per=0.5))
    call = str(refused.value).partition("in Python with ")[2].partition(" or on the command line")[0]
    eval(call, {"Queue": Queue, "Rate": Rate})
    Queue(path, rate=Rate(2, per=0.5)).close()


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


def test_a_handler_that_is_served_from_another_file_takes_its_settings_along(path, tmp_path):
    policy = Retry(max=2)
    with Queue(path, retry=policy, lease=5) as queue:
        handler = queue.handler(lambda: None)
        assert queue_of(handler, None, None)[2].get("retry") is None
        assert queue_of(handler, path, "ingest")[2]["lease"] == 5
        file, name, options = queue_of(handler, tmp_path / "other.db", None)
        with Queue(file, name, **options) as other:
            assert (other.options["retry"], other.options["lease"]) == (policy, 5)
        assert queue_of(handler, None, "mail")[2]["retry"] == policy


def test_settings_that_cannot_be_read_are_told_with_the_file(path, sql):
    with Queue(path) as queue:
        sql(path, "INSERT INTO membox_queue_meta VALUES ('settings:ingest', 'broken')")
        for call in (lambda: queue.enqueue("x"), queue.claim):
            with pytest.raises(CorruptDatabaseError, match=r"memory\.db: the settings"):
                call()
