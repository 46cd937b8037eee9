"""The command as people start it: in a pipe, at a terminal, and, for what is only about words, in this process."""

import shutil
import subprocess

import pytest
from membox_queue.cli.app import app
from programs import PROGRAMS
from typer.testing import CliRunner

from cli.running import COMMAND, Ended, Terminal, environment


@pytest.fixture
def folder(tmp_path):
    shutil.copy(PROGRAMS / "cli_handlers.py", tmp_path / "handlers.py")
    return tmp_path


@pytest.fixture
def run(folder):
    """Run the command in a pipe."""

    def run(*arguments, stdin=b"", logs=False, **variables):
        ended = subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=folder,
            input=stdin,
            capture_output=True,
            env=environment(**variables),
            timeout=100,
        )
        result = Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
        assert logs or "Traceback" not in result.err, result.err
        assert "\x1b" not in result.out + result.err
        return result

    return run


@pytest.fixture
def call(folder, monkeypatch):
    """Give the command in this process."""

    def call(*arguments, stdin=None):
        monkeypatch.chdir(folder)
        monkeypatch.delenv("MEMBOX_QUEUE_DB", raising=False)
        ended = CliRunner().invoke(app, [*map(str, arguments)], input=stdin, prog_name="membox-queue")
        assert ended.exception is None or isinstance(ended.exception, SystemExit), repr(ended.exception)
        return Ended(ended.exit_code, ended.stdout, ended.stderr)

    return call


@pytest.fixture
def terminal(folder):
    started = []

    def terminal(*arguments, **options):
        started.append(Terminal(arguments, folder, **options))
        return started[-1]

    yield terminal
    for one in started:
        one.close()
