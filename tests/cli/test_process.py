"""process: the worker at a terminal and in a pipe."""

import json
import signal
import subprocess
from datetime import datetime

import pytest
from membox_queue import Queue

from cli.running import COMMAND, environment


def test_in_a_pipe_it_tells_what_it_did_and_logs_what_failed(run, queue):
    queue.enqueue_many(["good", "bad"])
    ended = run("process", "handlers:digest", "--concurrency", 2, logs=True)
    assert (ended.code, ended.out) == (3, "1 done · 1 failed · 0 postponed · 0 retried\n")
    assert "item 2 failed: ValueError" in ended.err
    assert 'raise ValueError("the model said' in ended.err, "where it failed is told in the log"
    ended = run("process", "handlers:digest", "--retry-failed", "--json", "--limit", 1, logs=True)
    assert json.loads(ended.out)["retried"] == 1


def test_at_a_terminal_a_bar_moves_and_failures_stand_above_it(terminal, queue):
    queue.enqueue_many(["good", "bad", "good"])
    shown = terminal("process", "handlers:digest")
    assert shown.end() == 3
    rows = [line.rstrip() for line in shown.seen.replace("\r", "\n").splitlines()]
    assert "item 2 failed: ValueError: the model said [red]no[/red]" in rows
    assert any(row.startswith("ingest, 1 failed ━") and " 3/3 " in row for row in rows)
    assert rows[-1] == "2 done · 1 failed · 0 postponed · 0 retried"
    assert "Traceback" not in shown.raw


def test_warnings_stand_above_the_bar_too(terminal, queue):
    queue.enqueue("x")
    shown = terminal("process", "handlers:unstorable")
    assert shown.end() == 0
    seen = " ".join(shown.seen.split())
    assert "WARNING the result of item 1 is not stored" in seen
    assert seen.endswith("1 done · 0 failed · 0 postponed · 0 retried · 1 without a stored result")


def test_ctrl_c_gives_back_what_is_in_hand_and_says_so(terminal, queue):
    queue.enqueue("x")
    shown = terminal("process", "handlers:slow")
    shown.until("item 1")
    shown.type("\x03")
    shown.until("Stopping; waiting up to 30s for running items. Press Ctrl-C again to quit now.")
    shown.type("\x03")
    assert shown.end() == 130
    assert queue.get(1).status == "pending"
    assert "Traceback" not in shown.raw


def test_coroutine_functions_are_awaited(run, queue):
    queue.enqueue_many(["a", "b"])
    assert run("process", "handlers:awaited", "--concurrency", 2).out.startswith("2 done · 0 failed")
    assert queue.get(2).result == "awaited"
    assert run("ingest", "-", "--sync", "handlers:awaited", stdin=b"c").out == "item 3 done\n"


def test_ctrl_c_twice_gives_back_what_is_awaited(terminal, queue):
    queue.enqueue("x")
    shown = terminal("process", "handlers:awaits_long")
    shown.until("item 1")
    shown.type("\x03")
    shown.until("Stopping; waiting up to 30s for running items. Press Ctrl-C again to quit now.")
    shown.type("\x03")
    assert shown.end() == 130
    assert queue.get(1).status == "pending"
    assert "Traceback" not in shown.raw


def test_a_watching_worker_makes_the_file_and_ends_well_when_told_to(start_command, folder, until):
    process = start_command("process", "handlers:digest", "--watch", "--db", "new.db")
    until(lambda: (folder / "new.db").exists())
    with Queue(folder / "new.db") as queue:
        assert queue.wait(queue.enqueue("four"), timeout=60).result == 4
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "1 done · 0 failed · 0 postponed · 0 retried\n"), err


@pytest.fixture
def start_command(folder):
    started = []

    def start_command(*arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([COMMAND, *arguments], cwd=folder, env=environment(), **pipes))
        return started[-1]

    yield start_command
    for process in started:
        process.kill()
        process.communicate()


def test_another_worker_is_no_failure(call, queue):
    queue.acquire_worker_lease()
    assert call("process", "handlers:digest") == (0, "another worker is running\n", "")


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        ("nowhere:digest", "the module of 'nowhere:digest' cannot be found; is it importable where you run this?"),
        ("handlers:missing", "handlers has no missing"),
        ("handlers:time", "'handlers:time' is not callable"),
        (
            "broken:handler",
            "broken:handler cannot be imported: ZeroDivisionError: division by zero (broken.py, line 2)",
        ),
        ("garbled:handler", "garbled:handler cannot be imported: SyntaxError: invalid syntax (garbled.py, line 1)"),
        ("needy:handler", "needy:handler cannot be imported: ModuleNotFoundError: No module named 'openai_missing'"),
        ("handlers", "handlers has no queue with registered handlers; name a function of it: 'handlers:function'"),
    ],
)
def test_a_handler_that_cannot_be_used_is_told_in_a_line(call, queue, folder, handler, says):
    (folder / "broken.py").write_text("def handler(item): ...\n1 / 0\n")
    (folder / "garbled.py").write_text("def def\n")
    (folder / "needy.py").write_text("import openai_missing\n")
    ended = call("process", handler)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("membox-queue: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_a_number_that_makes_no_sense_is_wrong_usage(call, queue):
    assert call("process", "handlers:digest", "--concurrency", 0).code == 2
    assert "--linger" in call("process", "handlers:digest", "--linger", "long").err


def test_the_log_tells_start_and_stop_and_at_debug_each_item(run, queue):
    queue.enqueue("four")
    ended = run("process", "handlers:digest")
    assert "INFO worker started: drain of ingest in " in ended.err
    assert "by handlers:digest, concurrency 1, pid " in ended.err
    assert "INFO worker stopped after " in ended.err
    assert "item 1" not in ended.err
    queue.enqueue("four")
    assert "DEBUG item 2 of ingest done after " in run("process", "handlers:digest", "--log-level", "debug").err
    assert run("process", "handlers:digest", "--log-level", "warning").err == ""


@pytest.mark.parametrize("processes", [[], ["--processes", 1]])
def test_the_log_may_be_json(run, queue, processes):
    queue.enqueue_many(["good", "bad"])
    options = ["--log-level", "debug", "--log-format", "json"]
    ended = run("process", "handlers:digest", *options, *processes, logs=True)
    records = [json.loads(line) for line in ended.err.splitlines()]
    by_event = {record["event"]: record for record in records if record["logger"] == "membox_queue"}
    assert set(by_event) == {"worker_started", "claimed", "raised", "ended", "worker_stopped"}
    started, raised, end = by_event["worker_started"], by_event["raised"], by_event["ended"]
    assert (started["level"], started["queues"], started["handlers"]) == ("INFO", ["ingest"], ["handlers:digest"])
    assert (raised["item_id"], raised["error"], raised["level"]) == (2, "ValueError", "WARNING")
    assert "the model said" in raised["traceback"]
    assert (end["queue"], end["item_id"], end["attempt"], end["ending"]) == ("ingest", 2, 1, "failed")
    assert (by_event["worker_stopped"]["report"]["done"], end["pid"]) == (1, started["pid"])
    assert datetime.fromisoformat(started["time"]).tzinfo is not None
