"""top, compact, backup, remove, doctor and the demo."""

import json
import re
import sqlite3

import pytest
from membox_queue import Queue
from programs import PROGRAMS


def test_top_is_live_at_a_terminal_until_q_is_pressed(terminal, queue):
    shown = terminal("top", "--every", "0.1")
    shown.until("press q to quit")
    queue.enqueue_many(["x"] * 1234)
    shown.until("1,234")
    shown.type("q")
    assert shown.end() == 0
    assert "\x1b[?1049h" in shown.raw, "it uses the other screen"
    assert shown.raw.rindex("\x1b[?1049l") > shown.raw.rindex("\x1b[?1049h"), "and leaves it"


def test_top_ends_well_on_ctrl_c(terminal, queue):
    shown = terminal("top")
    shown.until("press q to quit")
    shown.type("\x03")
    assert shown.end() == 0
    assert "Traceback" not in shown.raw


def test_top_in_a_pipe_is_shown_once(call, queue):
    queue.enqueue("x")
    for arguments in ([], ["--once"]):
        ended = call("top", *arguments)
        assert ended.code == 0
        assert "pending       1" in ended.out
    assert call("top", "--every", "often").code == 2


def test_backup_makes_a_copy_once(run, call, queue, folder):
    queue.enqueue("x")
    ended = run("backup", "copy.db")
    assert ended.code == 0
    assert re.fullmatch(r"memory\.db → copy\.db, [\d.]+ KB\n", ended.out)
    with Queue(folder / "copy.db") as copy:
        assert copy.claim().content == "x"
    ended = call("backup", "copy.db")
    assert ended.code == 1
    assert "copy.db: the file exists already, and is not written over" in ended.err
    assert "the directory does not exist" in call("backup", "missing/copy.db").err


def test_compact_tells_what_it_gained(call, queue, folder):
    queue.enqueue_many("x" * 10_000 for _ in range(300))
    queue.tend()
    queue.purge("pending")
    ended = call("compact")
    assert ended.code == 0
    assert re.fullmatch(r"memory\.db: [\d.]+ [MK]B → [\d.]+ KB\n", ended.out)
    (folder / "junk.db").write_text("junk" * 1000)
    assert "not an SQLite database" in call("compact", "--db", "junk.db").err


@pytest.fixture
def used(path, sql):
    """A file with a table of the application, and a queue with one item done and two pending."""
    sql(path, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    with Queue(path) as queue, Queue(path, "mail") as mail:
        queue.enqueue_many(["a", "b"])
        queue.mark_done(queue.claim())
        mail.enqueue("c")
    return path


def test_remove_asks_and_says_what_would_be_lost(terminal, used, sql):
    asked = terminal("remove")
    asked.until("Remove the queue from memory.db, with 3 items, 2 of them unfinished? [y/N]:")
    asked.type("n\n")
    assert asked.end() == 1
    with Queue(used) as queue:
        assert queue.counts()["done"] == 1
    asked = terminal("remove")
    asked.until("[y/N]:")
    asked.type("y\n")
    assert asked.end() == 0
    assert "memory.db: 3 items and " in asked.seen
    assert sql(used, "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'") == [["orders"]]


def test_remove_without_a_terminal_wants_yes(run, call, used):
    ended = run("remove")
    assert (ended.code, ended.out) == (1, "")
    assert "2 of them unfinished? There is no terminal to ask at; give --yes to do it" in ended.err
    told = json.loads(call("remove", "--yes", "--json").out)
    assert (told["file"], told["items"], told["unfinished"]) == ("memory.db", 3, 2)
    assert "table ingest_queue" in told["objects"]
    assert "has no queue in it" in call("remove", "--yes").err
    assert "there is no file wrong.db" in call("remove", "--db", "wrong.db").err


def test_remove_is_refused_while_a_worker_lives(call, used, start):
    worker = start(PROGRAMS / "work_idly.py", used)
    assert worker.stdout.readline() == "working\n"
    ended = call("remove", "--yes")
    assert (ended.code, ended.out) == (1, "")
    assert "stop the workers of this file first, nothing was removed" in ended.err


def findings(ended):
    told = json.loads(ended.out)
    return told["healthy"], {finding["about"]: finding for finding in told["findings"]}


def test_doctor_on_a_healthy_queue(call, queue):
    queue.enqueue("x")
    ended = call("doctor")
    assert ended.code == 0
    assert "ok    integrity  no faults found" in ended.out
    assert ended.out.splitlines()[-1].startswith("healthy")


def test_doctor_finds_stuck_items_and_says_what_to_do(run, call, queue, path, start):
    queue.enqueue("x")
    start(PROGRAMS / "die_with_an_item.py", path).wait()
    ended = run("doctor")
    assert ended.code == 1
    assert "1 item (1) held by dead workers; the next claim reclaims them" in ended.out
    assert ended.out.splitlines()[-1] == "unhealthy: stuck"
    queue.mark_done(queue.claim())
    assert call("doctor").code == 0


def test_doctor_notes_what_waits_without_a_worker_and_what_failed(call, queue, clock):
    queue.enqueue_many(["a", "b"])
    queue.mark_failed(queue.claim(), "no")
    clock.advance(7200)
    healthy, found = findings(call("doctor", "--json"))
    assert healthy
    assert found["waiting"]["words"].startswith("1 item, the oldest for 2h, and no worker; start one")
    assert found["failed"]["level"] == "note"
    queue.pause()
    assert "membox-queue resume" in findings(call("doctor", "--json"))[1]["waiting"]["words"]


def test_doctor_notes_what_foreign_keys_keep_and_what_opening_has_mended(call, queue, path):
    queue.enqueue("x")
    queue.mark_done(queue.claim())
    queue.close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE notes (item REFERENCES ingest_queue); INSERT INTO notes VALUES (1); DROP INDEX ingest_queue_ready"
    )
    connection.close()
    healthy, found = findings(call("doctor", "--json"))
    assert healthy
    assert "notes" in found["kept"]["words"]
    assert "index ingest_queue_ready" in found["schema"]["words"]
    assert "schema" not in findings(call("doctor", "--json"))[1]


def test_doctor_finds_items_whose_status_is_none(call, queue, path):
    queue.enqueue("x")
    queue.close()
    connection = sqlite3.connect(path)
    [sql] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'ingest_queue_status_update'").fetchone()
    connection.executescript(f"DROP TRIGGER ingest_queue_status_update; UPDATE ingest_queue SET status = 'Done'; {sql}")
    connection.close()
    healthy, found = findings(call("doctor", "--json"))
    assert not healthy
    assert "1 item (1) with an unknown status" in found["status"]["words"]


def test_doctor_names_who_blocks_the_file(call, queue, writer):
    close_if_idle = writer()
    ended = call("doctor", "--json")
    assert ended.code == 1
    assert re.match(r"process \d+ has held the write lock for 2s", findings(ended)[1]["locks"]["words"])
    close_if_idle()
    assert call("doctor").code == 0


def test_doctor_on_what_cannot_be_opened(call, folder):
    (folder / "junk.db").write_text("junk" * 1000)
    ended = call("doctor", "--db", "junk.db")
    assert ended.code == 1
    assert "not an SQLite database" in ended.out
    assert ended.out.splitlines()[-1] == "unhealthy: file"
    healthy, found = findings(call("doctor", "--db", "junk.db", "--json"))
    assert not healthy
    assert found["file"]["level"] == "bad"


def test_doctor_on_a_damaged_file(call, path, folder):
    with Queue(path) as queue:
        queue.enqueue_many("x" * 3000 for _ in range(200))
        queue.compact()
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 2 // 4096 * 4096
    damaged[middle : middle + 4096] = b"\xff" * 4096
    (folder / "damaged.db").write_bytes(damaged)
    ended = call("doctor", "--db", "damaged.db")
    assert ended.code == 1
    assert "restore a backup" in ended.out
    assert "integrity" in ended.out.splitlines()[-1]


def test_the_demo_says_when_something_is_missing(folder, monkeypatch, capsys):
    from membox_queue import demo

    path = folder / "demo.db"
    with Queue(path) as queue:
        demo.create_tables(path)
        ids = [queue.enqueue("# Title\ntext"), queue.enqueue("# Title\ntext")]
        monkeypatch.setattr(demo, "SLOW_STEP", 0)
        monkeypatch.setenv("MEMBOX_QUEUE_DEMO", str(path))
        queue.drain(demo.digest, limit=1)
        assert not demo.reckon(queue, ids, searches=1)
    assert "2 accepted · 1 done · 2 lost" in capsys.readouterr().out


def test_the_demo_does_without_full_text_search(folder, monkeypatch, capsys):
    from membox_queue import demo

    monkeypatch.setattr(demo, "has_full_text_search", lambda: False)
    monkeypatch.setattr(demo, "SLOW_STEP", 0)
    path = folder / "demo.db"
    monkeypatch.setenv("MEMBOX_QUEUE_DEMO", str(path))
    with Queue(path) as queue:
        demo.create_tables(path)
        queue.enqueue(demo.DOCUMENTS["agents.md"])
        queue.drain(demo.digest)
        demo.search(queue, "queue")
    told = capsys.readouterr().out
    assert "no full-text search, FTS5" in told
    assert "search 'queue': Agents" in told


@pytest.mark.parametrize("command", ["compact", "backup", "remove", "doctor", "demo", "top"])
def test_wrong_options_are_wrong_usage(call, command):
    ended = call(command, "--nonsense")
    assert ended.code == 2
    assert "No such option" in ended.err
