"""process --processes and --reload: a parent and its children."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from membox_queue import Queue
from programs import PROGRAMS

from cli.running import COMMAND, environment


@pytest.fixture
def folder(tmp_path):
    shutil.copy(PROGRAMS / "several_app.py", tmp_path / "several_app.py")
    return tmp_path


@pytest.fixture
def start_command(folder):
    started = []

    def start_command(*arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [COMMAND, *map(str, arguments)]
        # A session of its own, so that a signal to the group reaches it and its children alone.
        started.append(subprocess.Popen(command, cwd=folder, env=environment(), start_new_session=True, **pipes))
        return started[-1]

    yield start_command
    for process in started:
        process.kill()
        process.communicate()


def loops(queue):
    """The process ids of the loops that run."""
    return {worker.pid for worker in queue.workers() if worker.kind}


def test_several_processes_drain_together_and_their_reports_are_summed(run, queue):
    ids = queue.enqueue_many([3, 3, 3])
    ended = run("process", "several_app:together", "--processes", 3, "--json")
    report = json.loads(ended.out)
    assert (ended.code, report["done"], report["failed"], report["stopped"]) == (0, 3, 0, False), ended.err
    assert len({queue.get(id).result for id in ids}) == 3
    assert queue.workers() == []


def test_what_failed_in_a_child_is_seen_in_the_exit_code(run, queue):
    queue.enqueue_many(["a", "b"])
    ended = run("process", "several_app:bad", "--processes", 2, logs=True)
    assert (ended.code, ended.out) == (3, "0 done · 2 failed · 0 postponed · 0 retried\n")


def test_failed_items_are_brought_back_once(run, queue):
    for _ in queue.enqueue_many(["a", "b"]):
        queue.mark_failed(queue.claim(), "once")
    ended = run("process", "several_app:bad", "--processes", 3, "--retry-failed", logs=True)
    assert ended.out == "0 done · 2 failed · 0 postponed · 2 retried\n"


def test_handlers_that_cannot_be_imported_end_the_parent(run, queue):
    for watch in ([], ["--watch"]):
        ended = run("process", "several_app:missing", "--processes", 2, *watch)
        assert ended.code == 1
        assert "membox-queue: several_app has no missing\n" in ended.err


def test_a_child_that_dies_while_draining_is_told_and_not_replaced(run, queue):
    queue.enqueue("x", max_retries=100)
    ended = run("process", "several_app:die", "--processes", 2)
    assert (ended.code, ended.out) == (1, "0 done · 0 failed · 0 postponed · 0 retried\n")
    deaths = ended.err.count("was killed by SIGKILL")
    assert deaths in (1, 2), "the other one may have tried it, too"
    assert queue.claim().attempt == deaths + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_children_and_they_end_well(queue, start_command, until, number):
    process = start_command("process", "several_app:where", "--processes", 2, "--watch", "--json")
    until(lambda: len(loops(queue)) == 2)
    assert process.pid not in loops(queue)
    assert queue.wait(queue.enqueue("x"), timeout=60).result in loops(queue)
    process.send_signal(number)
    out, said = process.communicate(timeout=60)
    report = json.loads(out)
    assert (process.returncode, report["done"], report["stopped"]) == (0, 1, True), said
    assert queue.workers() == []


def test_a_signal_to_the_parent_and_its_children_is_one_request(queue, start_command, until, folder):
    queue.enqueue(3)
    process = start_command("process", "several_app:together", "--processes", 2, "--watch")
    until(lambda: len(loops(queue)) == 2 and queue.counts()["processing"] == 1)
    for pid in (process.pid, *loops(queue)):
        os.kill(pid, signal.SIGTERM)
    until(lambda: [worker.stopping for worker in queue.workers()] in ([True], [True, True]))
    for number in range(3):
        (folder / f"arrived-{number}").touch()
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "1 done · 0 failed · 0 postponed · 0 retried\n"), said


def test_a_second_signal_ends_the_children_at_once(queue, start_command, until):
    queue.enqueue(100)
    process = start_command("process", "several_app:together", "--processes", 1, "--watch")
    until(lambda: queue.counts()["processing"] == 1)
    process.send_signal(signal.SIGTERM)
    until(lambda: [worker.stopping for worker in queue.workers()] == [True])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)


def test_a_child_that_dies_under_watch_is_replaced(queue, start_command, until):
    process = start_command("process", "several_app:where", "--processes", 2, "--watch")
    until(lambda: len(before := loops(queue)) == 2 and before)
    before = loops(queue)
    killed = before.pop()
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(loops(queue)) == 2 and killed not in loops(queue))
    assert before < loops(queue), "the other one went on"
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"worker process {killed} was killed by SIGKILL; another one is started in 1 s" in said


def test_children_stop_when_their_parent_is_killed(queue, start_command, until):
    process = start_command("process", "several_app:where", "--processes", 2, "--watch")
    until(lambda: len(loops(queue)) == 2)
    process.kill()
    process.wait(30)
    until(lambda: not loops(queue))
    assert queue.workers() == [], "they ended in order"


def test_ctrl_c_at_a_terminal_counts_once(terminal, queue, until):
    queue.enqueue(1)
    shown = terminal("process", "several_app:together", "--processes", 2, "--watch")
    until(lambda: len(loops(queue)) == 2 and queue.counts()["done"] == 1)
    shown.type("\x03")
    assert shown.end() == 0, shown.raw
    assert "1 done" in shown.seen
    assert "Traceback" not in shown.raw


def test_some_options_do_not_go_together(call):
    for options in (["--processes", "2"], ["--reload"]):
        ended = call("process", "several_app:where", "--limit", "5", *options)
        assert (ended.code, "leave out" in ended.err) == (2, True)


class TestReload:
    def results(self, queue):
        return queue.wait(queue.enqueue("x"), timeout=60).result

    def write(self, folder, text):
        (folder / "changing.py").write_text(text)

    def test_a_change_of_the_code_restarts_the_worker(self, queue, folder, start_command, until):
        self.write(folder, "def handler(item):\n    return 'one'\n")
        process = start_command("process", "changing:handler", "--reload")
        assert self.results(queue) == "one"
        (first,) = loops(queue)
        self.write(folder, "def handler(item):\n    return 'second'\n")
        until(lambda: (now := loops(queue)) and first not in now)
        assert self.results(queue) == "second"
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "2 done · 0 failed · 0 postponed · 0 retried\n"), said
        assert "changing.py has changed; starting again" in said

    def test_code_that_cannot_be_imported_is_told_and_waited_for(self, queue, folder, start_command, until):
        self.write(folder, "def handler(item):\n    return 'one'\n")
        process = start_command("process", "changing:handler", "--reload")
        assert self.results(queue) == "one"
        (first,) = loops(queue)
        self.write(folder, "def handler(item:\n")
        until(lambda: not loops(queue))
        self.write(folder, "def handler(item):\n    return 'mended'\n")
        assert self.results(queue) == "mended"
        assert first not in loops(queue)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said


def test_a_spawned_worker_serves_a_whole_module(folder, monkeypatch, until):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    shutil.copy(PROGRAMS / "several_awaited_app.py", folder / "spawned_module.py")
    with Queue("own.db") as queue, Queue("own.db", "mail") as mail, Queue("own.db", "other") as other:
        letter = mail.enqueue({"to": "ann"})
        queue.enqueue({"text": "it lingers for this"}, delay=200)
        text = queue.enqueue({"text": "hello"}, spawn="spawned_module")
        assert (queue.wait(text, timeout=60).result, mail.wait(letter, timeout=60).result) == ("HELLO", "ANN")
        assert not mail.spawn_worker("spawned_module"), "it serves this queue, too"
        (worker,) = queue.workers()
        assert (worker.kind, set(worker.queues)) == ("drain", {"ingest", "mail"})
        assert other.spawn_worker("spawned_module"), "it does not serve this one"
        log = folder / "own.db.worker.log"
        until(lambda: "there is no handler for the queue 'other'" in log.read_text())
        os.kill(worker.pid, signal.SIGTERM)
        until(lambda: not queue.worker_is_alive())
