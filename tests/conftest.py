"""What the tests share: a path, an open queue, a clock that stands still, SQL and programs in other processes."""

import json
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import settings
from membox_queue import Queue, _native

settings.register_profile("suite", deadline=None, database=None, derandomize=True)
settings.load_profile("suite")

# A shell that runs the tests in the background lets them ignore Ctrl-C, and every program that they start with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

RUN_SQL = """
import json, sqlite3, sys
path, statement, params = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None, timeout=30)
connection.text_factory = lambda raw: raw.decode(errors="replace")
print(json.dumps(connection.execute(statement, json.loads(params)).fetchall(), default=bytes.hex))
connection.close()
"""

HOLD_THE_WRITE_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
input()
"""


class Clock:
    """The plugin's clock, its readings as attributes."""

    def __init__(self, fake_clock):
        self.fake_clock = fake_clock
        self.advance = fake_clock.advance

    @property
    def now(self):
        return self.fake_clock.now()

    @property
    def ms(self):
        return _native.clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def queue(path):
    with Queue(path) as queue:
        yield queue


@pytest.fixture
def clock(fake_clock):
    return Clock(fake_clock)


@pytest.fixture(scope="session")
def sql():
    """Run one statement in another process and return its rows; this process may have the file open."""

    def run(path, statement, *params):
        command = [sys.executable, "-I", "-S", "-c", RUN_SQL, str(path), statement, json.dumps(params)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    return run


@pytest.fixture
def start():
    """Start a Python program with pipes for its input and output; none outlives the test."""
    started = []

    def start(program, *arguments, **options):
        command = [sys.executable, "-c", program, *map(str, arguments)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def writer(path, start):
    """Let another process hold the write lock of the file; returns what lets it go."""

    def writer():
        process = start(HOLD_THE_WRITE_LOCK, path)
        assert process.stdout.readline() == "held\n"
        return lambda: process.communicate("\n", timeout=30)

    return writer


@pytest.fixture(scope="session")
def until():
    """Ask again until the answer is true and return it; fails after a time no healthy machine needs."""

    def until(ask, limit=30.0):
        deadline = time.monotonic() + limit
        while not (answer := ask()):
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.01)
        return answer

    return until
