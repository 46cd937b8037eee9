"""Errors of a file: not a database, locked, out of reach."""

import pickle
import sqlite3
import threading
from contextlib import closing

import pytest
from membox_queue import (
    Queue,
    QueueBusyError,
    StorageError,
)
from programs import PROGRAMS


def test_errors_as_they_are_raised_pickle_too(tmp_path):
    junk = tmp_path / "junk"
    junk.write_bytes(b"no database" * 100)
    for path in (junk, tmp_path / "nowhere" / "memory.db"):
        with pytest.raises(StorageError) as raised:
            Queue(path)
        error = pickle.loads(pickle.dumps(raised.value))
        assert (type(error), str(error)) == (type(raised.value), str(raised.value))


READ = ["SELECT * FROM notes"]


EXCLUDE = ["PRAGMA locking_mode = EXCLUSIVE", "UPDATE notes SET text = 'x'"]


WRITE = ["BEGIN IMMEDIATE"]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize(
    ("held", "says"),
    [
        (READ, r"process \d+ reads the file, which is not in WAL mode yet.*open the queue again"),
        (EXCLUDE, r"process \d+ keeps the file for itself alone \(PRAGMA locking_mode=EXCLUSIVE"),
        (WRITE, r"process \d+ has an open write transaction"),
    ],
)
def test_an_open_that_waited_in_vain_says_for_what(path, start, mode, held, says):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.executescript("CREATE TABLE notes (text); INSERT INTO notes VALUES ('a'), ('b')")
    holder = start(PROGRAMS / "run_statements_and_hold.py", path, *held)
    assert holder.stdout.readline() == "held\n"
    if (mode, held) == ("WAL", READ):
        with Queue(path, busy_timeout=0.1) as queue:
            assert queue.enqueue("x") == 1
        return
    with pytest.raises(QueueBusyError, match=says):
        Queue(path, busy_timeout=0.1)
    holder.communicate("\n", timeout=30)
    with Queue(path) as queue:
        assert queue.enqueue("x") == 1


def test_an_open_that_waited_for_a_cursor_of_this_process_says_so(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE notes (text); INSERT INTO notes VALUES ('a'), ('b')")
        cursor = connection.execute("SELECT * FROM notes")
        cursor.fetchone()
        with pytest.raises(QueueBusyError, match=r"this very process.*reads the file.*finish its cursor"):
            Queue(path, busy_timeout=0.1)
        cursor.close()
        with Queue(path) as queue:
            assert queue.enqueue("x") == 1


def test_a_file_held_by_a_writer_is_busy_says_so_and_works_again_afterwards(path, writer):
    with Queue(path, busy_timeout=0.05) as queue:
        queue.enqueue("to claim")
        close_if_idle = writer()
        for write in (lambda: queue.enqueue("x"), queue.claim, queue.acquire_worker_lease):
            with pytest.raises(QueueBusyError, match=r"memory\.db.*process \d+ has an open write transaction"):
                write()
        close_if_idle()
        assert queue.enqueue("x") == 2


def test_a_file_held_while_it_is_opened_is_busy_and_says_so_too(path, writer):
    writer()
    with pytest.raises(QueueBusyError, match=r"process \d+ has an open write transaction"):
        Queue(path, busy_timeout=0.05)


def test_a_writer_that_lets_go_in_time_is_waited_for(queue, writer):
    later = threading.Timer(0.1, writer())
    later.start()
    assert queue.enqueue("x") == 1
    later.join()
