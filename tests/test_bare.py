"""The package with nothing else installed: queues and workers work, other commands say what to install."""

import importlib.metadata
import json
import shutil
import subprocess
import venv
from pathlib import Path

import membox_queue
import pytest
from cli.running import COMMAND, Terminal, environment
from programs import PROGRAMS

SENTENCE = (
    "membox-queue needs typer and rich: pip install 'membox-queue[cli]' "
    "(python -m membox_queue process HANDLER works without)\n"
)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter that finds the standard library and this package, and nothing else."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(folder, symlinks=True)
    (libraries,) = folder.glob("lib/python*/site-packages")
    (libraries / "membox_queue").symlink_to(Path(membox_queue.__file__).parent)
    return folder / "bin" / "python"


@pytest.fixture
def folder(tmp_path):
    for name in ("bare_handlers.py", "spawn_bare.py"):
        shutil.copy(PROGRAMS / name, tmp_path)
    return tmp_path


@pytest.fixture
def run(python, folder):
    def run(*arguments):
        variables = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
        return subprocess.run(
            [python, *map(str, arguments)],
            cwd=folder,
            env={**variables, "PYTHONNOUSERSITE": "1"},
            capture_output=True,
            text=True,
            timeout=100,
        )

    return run


@pytest.fixture
def terminal(python, folder):
    started = []

    def terminal(*arguments):
        started.append(Terminal(arguments, folder, command=(python, "-m", "membox_queue")))
        return started[-1]

    yield terminal
    for one in started:
        one.close()


def test_nothing_is_required_unless_an_extra_asks_for_it():
    required = importlib.metadata.requires("membox-queue") or []
    assert [line for line in required if "extra ==" not in line] == []
    assert sorted(line.split(">")[0].split("<")[0] for line in required if line.endswith("extra == 'cli'")) == [
        "rich",
        "typer",
    ]


def test_a_spawned_worker_needs_nothing_else(run):
    ended = run("spawn_bare.py")
    assert (ended.returncode, ended.stdout) == (0, "done [] []\n"), ended.stderr


def test_process_needs_nothing_else(run, queue):
    queue.enqueue_many(["good", "bad"])
    ended = run("-m", "membox_queue", "process", "bare_handlers:strict", "--concurrency", 2)
    assert (ended.returncode, ended.stdout) == (3, "1 done · 1 failed · 0 postponed · 0 retried\n"), ended.stderr
    assert "item 2 failed: ValueError" in ended.stderr
    ended = run("-m", "membox_queue", "process", "bare_handlers:strict", "--retry-failed", "--json")
    assert json.loads(ended.stdout)["retried"] == 1


def test_process_says_what_its_options_are_and_what_is_wrong(run, queue):
    ended = run("-m", "membox_queue", "process", "--help")
    assert ended.returncode == 0
    for option in ("HANDLER", "--db", "--queue", "--concurrency", "--retry-failed", "--watch", "--limit", "--linger"):
        assert option in ended.stdout
    assert "--announced" not in ended.stdout
    for wrong in (["--concurrency", "0"], ["--linger", "long"], ["--lim", "1"]):
        ended = run("-m", "membox_queue", "process", "bare_handlers:strict", *wrong)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert wrong[0] in ended.stderr
    ended = run("-m", "membox_queue", "process", "nowhere:handler")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("membox-queue: the module of 'nowhere:handler' cannot be found")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["status"], ["--help"], ["--version"], ["demo"], []])
@pytest.mark.parametrize("command", [["-m", "membox_queue"], [COMMAND]], ids=["python -m", "membox-queue"])
def test_every_other_command_says_what_to_install(run, command, arguments):
    ended = run(*command, *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", SENTENCE)


def test_the_command_itself_needs_the_extra_for_process_too(run, queue):
    ended = run(COMMAND, "process", "bare_handlers:strict")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", SENTENCE)


def test_at_a_terminal_progress_is_told_in_plain_lines(terminal, queue):
    queue.enqueue_many(["good", "bad", "good"])
    shown = terminal("process", "bare_handlers:strict")
    assert shown.end() == 3
    assert shown.seen.splitlines() == [
        "item 1 done, 2 to go",
        "item 2 failed: ValueError: not this one",
        "item 3 done, 0 to go",
        "2 done · 1 failed · 0 postponed · 0 retried",
    ]
    assert "\x1b" not in shown.raw


def test_ctrl_c_twice_gives_back_what_is_in_hand(terminal, queue):
    queue.enqueue("x")
    shown = terminal("process", "bare_handlers:slow")
    shown.until("began")
    shown.type("\x03")
    shown.until("Stopping; waiting up to 30s for running items. Press Ctrl-C again to quit now.")
    shown.type("\x03")
    assert shown.end() == 130
    assert queue.get(1).status == "pending"
    assert "Traceback" not in shown.raw


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_worker_whose_output_is_closed_works_all_the_same(python, folder, queue, closed):
    queue.enqueue("good")
    command = f"exec {python} -m membox_queue process bare_handlers:strict {closed}>&-"
    assert subprocess.run(["bash", "-c", command], cwd=folder, env=environment()).returncode == 0
    assert queue.get(1).status == "done"


def test_output_that_is_not_read_is_no_traceback(python, folder, queue):
    command = f"{python} -m membox_queue process bare_handlers:strict --log-level warning | true"
    ended = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True)
    assert ended.stderr == ""
