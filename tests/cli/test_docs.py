"""Every example of docs/cli.md does what it says."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from membox_queue import Queue
from membox_queue.cli.app import app

from cli.running import COMMAND, environment

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
SHELL = [line for name, text in BLOCKS if name == "sh" for line in text.splitlines()]


@pytest.fixture(scope="module", autouse=True)
def demo(tmp_path_factory):
    """The last example takes eight seconds, most of which it sleeps: the others run meanwhile."""
    (arguments,) = [line.split()[1:] for line in SHELL if "membox-queue demo" in line]
    folder = tmp_path_factory.mktemp("demo")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([COMMAND, *arguments], cwd=folder, env=environment(), **pipes)
    yield process, folder
    process.kill()
    process.communicate()


def test_the_examples_are_one_session_that_works(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in ("plan.md", "retro.md"):
        (tmp_path / "notes" / name).write_text(f"# {name}\nwords and words\n")
    (program,) = [text for name, text in BLOCKS if name == "python"]
    (tmp_path / program.splitlines()[0].removeprefix("# ")).write_text(program)
    variables = environment(PATH=f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    lines = [line for line in SHELL if "membox-queue demo" not in line]
    ended = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (tmp_path / "copy.md").read_text() == "# plan.md\nwords and words\n"
    with Queue(tmp_path / "memory.db", "background") as queue:
        assert queue.wait(queue.items()[0].id, timeout=60).status == "done"


def test_the_demo_loses_nothing(demo):
    process, folder = demo
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    rows = out.splitlines()
    assert re.match(r"accepted 6 documents, each in [\d.]+ to [\d.]+ ms", rows[0])
    # The worker's pauses are the same on a machine that is too busy to look at it in time.
    assert any(re.fullmatch(r"  [1-3] ingests? pending — results may be incomplete", row) for row in rows)
    assert any(re.match(r"killed worker \d+ with \w+\.md \d+% done|the worker was never seen", row) for row in rows)
    assert re.fullmatch(r"6 accepted · 6 done · 0 lost · [01] redelivered · integrity ok", rows[-2])
    assert rows[-1] == "look at it: membox-queue status --db demo.db"
    with Queue(folder / "demo.db") as queue:
        assert queue.counts()["done"] == 6
    again = subprocess.run([COMMAND, "demo", "--keep", "demo.db"], cwd=folder, capture_output=True, text=True)
    assert again.returncode == 1
    assert "demo.db exists already; the demo needs a file of its own" in again.stderr


def test_every_command_has_an_example():
    names = [command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands]
    for name in [*names, *(f"schedule {verb}" for verb in ("list", "add", "remove"))]:
        assert any(f"membox-queue {name}" in line for line in SHELL), name


@pytest.mark.parametrize("picture", re.findall(r"\((pictures/\S+)\)", DOCS.read_text(encoding="utf-8")))
def test_every_picture_is_there(picture):
    assert (DOCS.parent / picture).read_text(encoding="utf-8").startswith("<svg")
