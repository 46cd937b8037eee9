"""status, list, show and failures: the same facts for people, for pipes and as JSON."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest
from membox_queue import NewItem, Queue
from membox_queue.cli.app import app
from programs import PROGRAMS
from typer.main import get_command

UGLY = "[bold]not markup[/bold] :smile: \x1b[31mred\x1b[0m\x07 \u202eback\nsecond line"


@pytest.fixture
def filled(queue):
    """Two done, one failed, one running, one pending, one delayed."""
    queue.enqueue_many(["one", NewItem(UGLY, source_path="/notes/ugly [x].md", project="p", group="g"), "bad"])
    for _ in range(2):
        queue.mark_done(queue.claim(), result={"words": 1})
    queue.mark_failed(queue.claim(), "ValueError: [red]no[/red]\nat all")
    queue.enqueue_many(["running", "waiting", NewItem("later", delay=600)])
    running = queue.claim()
    running.set_progress(0.25, "asking [b]it[/b]")
    return running


def test_status_in_a_pipe_is_plain_lines(run, path, queue, filled):
    queue.acquire_worker_lease()
    with Queue(path, "emails") as emails:
        emails.enqueue("x")
    ended = run("status")
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()]
    for words in (["processing", "1"], ["done", "2"], ["failed", "1"]):
        assert words in rows
    assert any(row[:2] == ["pending", "2"] and "oldest" in row for row in rows)
    assert f"worker        {socket.gethostname()}:{os.getpid()} (no loop), for " in ended.out
    assert "1 in progress" in ended.out
    assert "next due      in 9m" in ended.out
    assert "other queues  emails (1 pending)" in ended.out
    assert "25% asking [b]it[/b]" in ended.out
    assert "ValueError: [red]no[/red] at all" in ended.out
    assert not any(line.endswith(" ") or set(line) & set("│┃─━┏") for line in ended.out.splitlines())


def test_status_as_json_is_nothing_but_json(run, path, filled):
    ended = run("status", "--json", MEMBOX_QUEUE_DB=str(path))
    seen = json.loads(ended.out)
    assert seen["counts"] == {"pending": 2, "processing": 1, "done": 2, "failed": 1, "blocked": 0, "cancelled": 0}
    assert (seen["worker"], seen["paused"], seen["queue"]) == (None, False, "ingest")
    assert seen["coverage_note"] == "3 ingests pending — results may be incomplete"
    assert [item["error"] for item in seen["failures"]] == ["ValueError: [red]no[/red]\nat all"]
    assert [item["progress"] for item in seen["running"]] == [0.25]
    assert ended.err == ""


def test_while_a_loop_works_no_screen_says_start_one(call, run, path, queue, background, until):
    future = background(queue.work, lambda item: None)
    until(queue.worker_is_alive)
    with Queue(path) as other:
        other.enqueue("delayed", delay=600)
        named = f"{socket.gethostname()}:{os.getpid()} (work), for "
        for command in (["status"], ["top", "--once"]):
            shown = call(*command).out
            assert named in shown
            assert "start one" not in shown
        (worker,) = json.loads(run("status", "--json").out)["workers"]
        assert (worker["pid"], worker["kind"], worker["queues"]) == (os.getpid(), "work", ["ingest"])
        assert (worker["alive"], worker["stopping"], worker["item_ids"]) == (True, False, [])
        assert call("ingest", "-", stdin="x").out.endswith("worker: alive\n")
        until(lambda: other.counts()["done"] == 1)
    queue.stop()
    future.result(30)
    assert "none; start one: membox-queue process HANDLER" in call("status").out


def test_a_dead_worker_is_shown_as_dead_and_another_may_be_started(call, path, queue, start):
    queue.enqueue_many(["held", "pending"])
    process = start(PROGRAMS / "hold.py", path, "item", 3600)
    assert process.stdout.readline() == "held\n"
    assert "start one" not in call("status").out
    process.kill()
    process.wait(30)
    shown = call("status").out
    assert f":{process.pid} (dead), for " in shown
    assert "none; start one: membox-queue process HANDLER" in shown


def test_status_of_an_empty_queue(call, queue):
    assert "pending       0" in call("status").out


def test_status_says_how_to_go_on(call, queue):
    queue.enqueue("x")
    assert "none; start one: membox-queue process HANDLER" in call("status").out
    queue.pause()
    told = call("status").out
    assert "PAUSED" in told
    assert "none; paused until: membox-queue resume" in told


def test_list_is_one_line_an_item_with_the_newest_first(run, filled):
    ended = run("list")
    rows = [line.split()[:2] for line in ended.out.splitlines()]
    assert rows == [
        ["ID", "STATUS"],
        ["6", "pending"],
        ["5", "pending"],
        ["4", "processing"],
        ["3", "failed"],
        ["2", "done"],
        ["1", "done"],
    ]
    assert r"[bold]not markup[/bold] :smile: \x1b[31mred\x1b[0m\x07 \u202eback second line" in ended.out
    assert "ugly [x].md" in ended.out


def test_list_by_page_status_project_and_group(call, filled):
    page = call("list", "--limit", 2, "--oldest", "--json")
    assert [item["id"] for item in json.loads(page.out)] == [1, 2]
    assert [item["id"] for item in json.loads(call("list", "--after", 2, "--oldest", "--json").out)] == [3, 4, 5, 6]
    assert [item["id"] for item in json.loads(call("list", "--status", "done", "--json").out)] == [2, 1]
    assert [item["id"] for item in json.loads(call("list", "--project", "p", "--json").out)] == [2]
    assert [item["id"] for item in json.loads(call("list", "--group", "g", "--json").out)] == [2]
    assert "more: --after 5" in call("list", "--limit", 2).err
    assert call("list", "--status", "cancelled") == (0, "", "no items\n")
    wrong = call("list", "--status", "finished")
    assert wrong.code == 1
    assert "status must be one of pending, processing" in wrong.err


def test_show_tells_all_about_an_item(call, queue, filled):
    told = call("show", 3).out
    assert "status        failed" in told
    assert "1  failed" in told
    assert "error\n  ValueError: [red]no[/red]\n  at all" in told
    assert told.endswith("content\n  bad\n")
    assert 'result\n  {\n    "words": 1\n  }' in call("show", 1).out
    seen = json.loads(call("show", 2, "--json").out)
    assert (seen["content"], seen["content_type"], seen["result"]) == (UGLY, "text", {"words": 1})
    assert [attempt["ending"] for attempt in seen["history"]] == ["done"]
    id = queue.enqueue(b"\x00\xff")
    assert json.loads(call("show", id, "--json").out)["content"] == "AP8="
    assert "content\n  2 bytes" in call("show", id).out


def test_show_of_an_item_that_is_not_there(call, path, queue):
    queue.enqueue("x")
    assert call("show", 9) == (1, "", "membox-queue: no queue of the file has an item 9\n")
    with Queue(path, "emails") as emails:
        emails.enqueue("y")
    assert "item 1 of ingest" in call("show", 1, "--queue", "emails").out
    wrong = call("show", "one")
    assert wrong.code == 2
    assert "Usage: membox-queue show [OPTIONS] " in wrong.err
    assert "integer" in wrong.err


def test_the_content_alone_is_as_it_was_given_in_a_pipe_but_not_at_a_terminal(queue, folder, terminal):
    queue.enqueue(UGLY)
    command = [sys.executable, "-m", "membox_queue", "show", "1", "--content"]
    assert subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout == UGLY.encode()
    at_terminal = terminal("show", 1, "--content")
    assert at_terminal.end() == 0
    assert at_terminal.raw == "[bold]not markup[/bold] :smile: \\x1b[31mred\\x1b[0m\\x07 \\u202eback\r\nsecond line\r\n"


def test_failures_the_newest_first(call, queue, filled):
    assert "ValueError: [red]no[/red] at all" in call("failures").out
    assert [item["id"] for item in json.loads(call("failures", "--json", "--limit", 1).out)] == [3]
    assert call("failures", "--limit", 0).code == 2
    queue.purge("failed")
    assert call("failures") == (0, "", "no failed items\n")


def test_at_a_terminal_no_line_is_longer_than_the_terminal(terminal, queue, filled):
    for command in ("status", "list"):
        shown = terminal(command)
        assert shown.end() == 0
        assert max(len(line) for line in shown.seen.splitlines()) <= 80
        assert "\x1b[31m" in shown.raw, "failed is red"
        assert "\x1b[31mred" not in shown.raw, "what others wrote colours nothing"


def test_a_pipe_that_is_closed_early_is_no_error(queue, folder):
    queue.enqueue_many("x" * 100 for _ in range(900))
    command = f"{sys.executable} -m membox_queue list --limit 900 | head -1"
    ended = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    assert ended.stdout.split()[:2] == ["ID", "STATUS"]
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


READING = [
    ("status",),
    ("top",),
    ("list",),
    ("show", "1"),
    ("failures",),
    ("retry", "--all"),
    ("replay", "1"),
    ("cancel", "1"),
    ("delete", "1", "--yes"),
    ("purge", "--yes"),
    ("prune", "--older-than", "1d", "--yes"),
    ("pause",),
    ("resume",),
    ("schedule", "list"),
    ("schedule", "remove", "x"),
    ("compact",),
    ("backup", "copy.db"),
    ("doctor",),
    ("process", "handlers:digest"),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_missing_file_is_named_and_not_made(call, folder, command):
    ended = call(*command, "--db", "wrong.db")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "membox-queue: there is no file wrong.db; name the right one with --db or MEMBOX_QUEUE_DB\n"
    assert [file.name for file in folder.iterdir() if file.name != "__pycache__"] == ["handlers.py"]


def test_a_missing_file_through_the_real_command(run, folder):
    ended = run("status", MEMBOX_QUEUE_DB="elsewhere.db")
    assert (ended.code, ended.out) == (1, "")
    assert "there is no file elsewhere.db" in ended.err


def test_a_file_without_a_queue_is_not_turned_into_one(call, folder, sql):
    sql(folder / "app.db", "CREATE TABLE users (name TEXT)")
    before = (folder / "app.db").read_bytes()
    ended = call("status", "--db", "app.db")
    assert ended.code == 1
    assert "app.db has no queue in it, and was not changed" in ended.err
    assert (folder / "app.db").read_bytes() == before


def test_a_file_that_is_no_database(call, folder):
    (folder / "notes.txt").write_text("dear diary " * 100)
    ended = call("status", "--db", "notes.txt")
    assert ended.code == 1
    assert "not an SQLite database" in ended.err


def test_the_package_does_not_load_what_only_the_command_needs():
    program = "import sys, membox_queue; print(sorted({'typer', 'rich', 'click'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_help_names_every_command_the_exit_codes_and_the_version(run, call):
    told = run("--help").out
    for command in get_command(app).commands:
        assert re.search(rf"\b{command}\b", told), command
    assert "Exit codes: 0 done, 1 not possible" in " ".join(told.split())
    assert call("--version").out.startswith("membox-queue 0.")
    wrong = call("frobnicate")
    assert wrong.code == 2
    assert "No such command 'frobnicate'" in wrong.err
