"""spawn_worker: a detached process that exists only while there is work."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
from datetime import timedelta
from pathlib import Path

import pytest
from membox_queue import NewItem, Rate, Retry
from membox_queue.workers.spawn import LOG_BYTES
from programs import PROGRAMS


@pytest.fixture(autouse=True)
def handlers(tmp_path, monkeypatch):
    shutil.copy(PROGRAMS / "spawned_handlers.py", tmp_path / "spawned_handlers.py")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("spawned_handlers", None)


@pytest.fixture
def log(engine):
    return engine.worker_log()


@pytest.fixture
def gone(queue, until):
    """Wait until no worker is left."""
    return lambda: until(lambda: not queue.worker_is_alive())


def result(queue, qid):
    return queue.wait(qid, timeout=30).result


def test_a_worker_is_started_in_a_session_of_its_own_and_drains_the_queue(queue, gone):
    first, second = queue.enqueue_many(["a", "b"])
    assert queue.spawn_worker("spawned_handlers:where") is True
    found = result(queue, second)
    assert found["pid"] not in (os.getpid(), os.getsid(0))
    assert found["session"] == found["pid"]
    assert found["stdin"] == ""
    assert result(queue, first)["pid"] == found["pid"]
    gone()


def test_while_a_worker_is_alive_none_is_started(queue, open_queue, log):
    queue.enqueue("x")
    with open_queue() as other:
        other.acquire_worker_lease()
        assert queue.spawn_worker("spawned_handlers:where") is False
    assert not log.exists()
    assert queue.get(1).attempt == 0


def test_repeated_calls_do_not_pile_up_workers(queue, open_queue, tmp_path, gone):
    gate = tmp_path / "gate"
    ids = queue.enqueue_many([str(gate)] * 5)
    with open_queue() as other:
        spawned = [one.spawn_worker("spawned_handlers:gated") for _ in range(5) for one in (queue, other)]
        assert spawned == [True] + [False] * 9
    gate.touch()
    assert len({result(queue, qid) for qid in ids}) == 1
    gone()
    assert queue.counts()["done"] == 5


def test_each_queue_has_a_worker_of_its_own(queue, open_queue, gone):
    with open_queue("mail") as mail:
        one, two = queue.enqueue("a"), mail.enqueue("b")
        assert queue.spawn_worker("spawned_handlers:where")
        assert mail.spawn_worker("spawned_handlers:where")
        assert result(queue, one)["pid"] != result(mail, two)["pid"]
        gone()


def test_a_worker_goes_by_what_was_configured_since_the_queue_was_opened(open_queue, gone):
    with open_queue(lease=7, keep_content=False) as queue, open_queue() as other:
        other.configure(keep_content=True)
        qid = queue.enqueue("x", spawn="spawned_handlers:where")
        assert result(queue, qid)["lease"] == 7
        assert queue.get(qid).content == "x"
        gone()


def test_when_the_worker_is_gone_another_can_be_started(queue, gone):
    for _ in range(2):
        qid = queue.enqueue("x")
        assert queue.spawn_worker("spawned_handlers:where")
        result(queue, qid)
        gone()


def test_a_worker_that_never_arrives_is_replaced_after_a_while(queue, clock):
    queue.enqueue("x")
    assert queue._announce_worker(10)
    assert not queue.spawn_worker("spawned_handlers:where")
    clock.advance(10)
    assert queue.spawn_worker("spawned_handlers:where")
    assert result(queue, 1)["pid"]


def test_a_worker_slow_to_import_its_handler_keeps_others_away_while_it_lives(queue, tmp_path, clock, until, gone):
    shutil.copy(PROGRAMS / "slow_to_import.py", tmp_path / "slow_to_import.py")
    importing = tmp_path / "importing"
    qid = queue.enqueue("x")

    def began():
        until(lambda: importing.exists() and importing.read_text())
        pid = int(importing.read_text())
        importing.unlink()
        return pid

    assert queue.spawn_worker("slow_to_import:handler")
    first = began()
    clock.advance(60)
    assert not queue.spawn_worker("slow_to_import:handler")
    os.kill(first, signal.SIGKILL)
    until(lambda: queue.spawn_worker("slow_to_import:handler"))
    second = began()
    (tmp_path / "gate").touch()
    assert result(queue, qid) == second
    gone()


def test_a_worker_finds_the_modules_of_its_spawner_and_no_others(queue, tmp_path, monkeypatch, gone):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "argparse.py").write_text("raise RuntimeError('not the one that was meant')")
    monkeypatch.chdir(elsewhere)
    found = result(queue, queue.enqueue("x", spawn="spawned_handlers:surroundings"))
    assert set(found["path"]) == {entry for entry in sys.path if entry}
    # A handler may run other interpreters, which have libraries of their own.
    assert not {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")} & set(found["handed on"])
    gone()


@pytest.mark.parametrize("verb", ["enqueue_file", "spawn_worker"])
def test_asyncio_spawns_as_well(queue, open_async_queue, tmp_path, gone, verb):
    (tmp_path / "note.md").write_text("x")

    async def main():
        async with open_async_queue() as aqueue:
            if verb == "enqueue_file":
                return await aqueue.enqueue_file(tmp_path / "note.md", spawn="spawned_handlers:where")
            qid = await aqueue.enqueue("x")
            assert await aqueue.spawn_worker("spawned_handlers:where")
            return qid

    assert result(queue, asyncio.run(main()))["pid"] != os.getpid()
    gone()


@pytest.mark.parametrize("verb", ["enqueue", "enqueue_many", "enqueue_file"])
def test_spawn_does_both(queue, tmp_path, gone, verb):
    if verb == "enqueue":
        qid = queue.enqueue("x", spawn="spawned_handlers:where")
    elif verb == "enqueue_many":
        qid = queue.enqueue_many(["x", NewItem("y")], spawn="spawned_handlers:where")[-1]
    else:
        (tmp_path / "note.md").write_text("x")
        qid = queue.enqueue_file(tmp_path / "note.md", spawn="spawned_handlers:where")
    assert result(queue, qid)["pid"] != os.getpid()
    gone()


def test_its_settings_are_those_of_the_object_that_spawned_it(open_queue, until):
    options = {
        "lease": 7,
        "worker": "anna",
        "max_retries": 1,
        "retry": Retry(max=4, base=60, jitter=0),
        "rate": Rate(100, 1),
        "keep_content": False,
    }
    with open_queue("mail", **options) as queue:
        good = queue.enqueue("x")
        assert queue.spawn_worker("spawned_handlers:where")
        found = result(queue, good)
        assert (found["worker"], found["lease"]) == ("anna", 7)
        assert queue.get(good).content is None
        until(lambda: not queue.worker_is_alive())
        bad = queue.enqueue("y")
        assert queue.spawn_worker("spawned_handlers:failing", linger=0)
        until(lambda: queue.get(bad).retries == 1)
        item = queue.get(bad)
        assert (item.status, item.error) == ("pending", "LookupError: y")
        assert item.run_at > item.enqueued_at + timedelta(seconds=30)


def test_failed_items_are_brought_back_if_asked(queue, gone, until):
    qid = queue.enqueue("x")
    queue.mark_failed(queue.claim(), "no")
    assert queue.spawn_worker("spawned_handlers:where", retry_failed=True)
    until(lambda: queue.get(qid).status == "done")
    gone()


def test_a_worker_stays_for_retries_that_fall_due_within_its_linger(queue, gone):
    qid = queue.enqueue("x")
    assert queue.spawn_worker("spawned_handlers:later", linger=60)
    item = queue.wait(qid, timeout=30)
    assert (item.status, item.attempt) == ("done", 2)
    gone()


def test_what_it_says_goes_to_a_log_that_only_its_owner_can_read(queue, log, gone, until):
    old = os.umask(0)
    try:
        queue.enqueue("hello")
        queue.spawn_worker("spawned_handlers:where")
    finally:
        os.umask(old)
    until(lambda: "1 done ·" in log.read_text())
    assert "to the log hello" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    gone()


def test_a_log_goes_on_and_a_large_one_is_set_aside(queue, log, gone, until):
    log.write_text("older\n")
    queue.enqueue("one")
    queue.spawn_worker("spawned_handlers:where")
    until(lambda: "1 done ·" in log.read_text())
    assert log.read_text().startswith("older\n")
    gone()
    log.write_text("x" * (LOG_BYTES + 1))
    queue.enqueue("two")
    queue.spawn_worker("spawned_handlers:where")
    until(lambda: log.exists() and "1 done ·" in log.read_text())
    assert "to the log two\n" in log.read_text()
    assert "x" * 80 not in log.read_text()
    aside = log.with_name(log.name + ".1")
    assert aside.stat().st_size == LOG_BYTES + 1
    gone()


def test_no_process_is_left_behind_when_it_has_ended(queue, until):
    qid = queue.enqueue("x")
    queue.spawn_worker("spawned_handlers:where")
    pid = result(queue, qid)["pid"]
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_it_outlives_whoever_spawned_it(queue, address, tmp_path, start, gone):
    gate = tmp_path / "gate"
    qid = queue.enqueue(str(gate))
    program = (
        "import sys; from membox_queue import Queue; print(Queue(sys.argv[1]).spawn_worker('spawned_handlers:gated'))"
    )
    spawner = start(program, address, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert spawner.communicate(timeout=30)[0] == "True\n"
    assert spawner.returncode == 0
    gate.touch()
    assert result(queue, qid) != spawner.pid
    gone()


def test_a_handler_may_be_an_attribute_of_something_in_its_module(queue, gone):
    qid = queue.enqueue("x", spawn="spawned_handlers:Box.handler")
    assert result(queue, qid) == "boxed"
    gone()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "handler",
        "spawned_handlers:",
        ":where",
        "no_such_module:where",
        "spawned_handlers.sub:where",
        ".rel:where",
        5,
    ],
)
def test_a_name_that_no_worker_could_import_is_refused_at_once(queue, log, name):
    queue.enqueue("x")
    with pytest.raises((ValueError, TypeError)):
        queue.spawn_worker(name)
    assert not log.exists()
    # And nobody is kept from spawning a better one.
    assert queue._announce_worker(1)


def fast(item):
    return None


def inner():
    def handler(item):
        return None

    return handler


@pytest.mark.parametrize(
    ("handler", "advice"),
    [
        (fast, "finds its handler by its name: give '.*test_spawn_worker:fast'"),
        (
            lambda item: None,
            "which a lambda does not have; define it at the top of a module and give 'package.module:n",
        ),
        (inner(), "which a function inside a function does not have; define it at the top of a module"),
        ("__main__:fast", "the program that runs, .*; move it into a module of its own"),
        ("spawned_handlers.py:fast", "by its module, not its file"),
    ],
)
def test_who_gives_no_name_is_told_which_to_give(queue, handler, advice):
    for spawn in (queue.spawn_worker, lambda handler: queue.enqueue("x", spawn=handler)):
        with pytest.raises(ValueError, match=advice):
            spawn(handler)
    assert queue.pending() == 0


def test_a_type_of_the_program_that_runs_is_told_to_move(address, start):
    program = PROGRAMS / "spawn_with_a_type_of_main.py"
    said, _ = start(program, address).communicate(timeout=30)
    assert "the type Doc is defined in the program that runs" in said
    assert "move it into a module" in said


@pytest.mark.parametrize("verb", ["enqueue", "enqueue_many"])
def test_nothing_is_enqueued_when_the_name_of_the_handler_is_wrong(queue, verb):
    with pytest.raises(ValueError, match="no_such_module"):
        getattr(queue, verb)(["x"], spawn="no_such_module:handler")
    assert queue.pending() == 0


@pytest.mark.parametrize("name", ["spawned_handlers:missing", "spawned_handlers:number"])
def test_a_module_without_that_function_is_told_in_the_log(queue, log, until, name):
    queue.enqueue("x")
    assert queue.spawn_worker(name)
    until(lambda: log.exists() and "membox-queue:" in log.read_text())
    assert name.split(":")[1] in log.read_text()
    assert "Traceback" not in log.read_text()
    assert queue.get(1).attempt == 0


def test_a_worker_that_cannot_be_started_keeps_nobody_from_trying_again(queue, log):
    queue.enqueue("x")
    log.mkdir()
    with pytest.raises(OSError, match=r"worker\.log"):
        queue.spawn_worker("spawned_handlers:where")
    log.rmdir()
    assert queue.spawn_worker("spawned_handlers:where")
    assert result(queue, 1)["pid"]


@pytest.mark.parametrize("options", [{"linger": -1}, {"concurrency": 0}, {"linger": "long"}])
def test_options_that_make_no_sense_are_refused_at_once(queue, log, options):
    queue.enqueue("x")
    with pytest.raises((TypeError, ValueError)):
        queue.spawn_worker("spawned_handlers:where", **options)
    assert not log.exists()


def race(queue, address, tmp_path, start, gone, processes, rounds):
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    racers = [start(PROGRAMS / "enqueue_and_spawn.py", address, rounds, env=environment) for _ in range(processes)]
    assert [racer.communicate(timeout=3600)[0] for racer in racers] == ["all handled\n"] * processes
    assert queue.counts()["done"] == processes * rounds
    assert {item.attempt for item in queue.items(limit=processes * rounds)} == {1}
    gone()


def test_enqueue_and_spawn_leaves_no_item_without_a_worker(queue, address, tmp_path, start, gone):
    race(queue, address, tmp_path, start, gone, processes=3, rounds=10)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_a_thousand_rounds_of_enqueue_and_spawn_leave_no_item_without_a_worker(queue, address, tmp_path, start, gone):
    race(queue, address, tmp_path, start, gone, processes=4, rounds=250)


def test_the_command_finds_handlers_where_it_is_given(queue, address, tmp_path):
    (tmp_path / "beside.py").write_text("def handler(item):\n    return item.content * 2\n")
    queue.enqueue("ab")
    command = [sys.executable, "-m", "membox_queue", "process", "beside:handler", "--db", address]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "1 done · 0 failed · 0 postponed · 0 retried\n"), ended.stderr
    assert queue.get(1).result == "abab"


def test_a_mistake_at_the_command_line_is_told_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "membox_queue", "process", "nothing:here"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "nothing:here" in ended.stderr
    assert "Traceback" not in ended.stderr
