"""What the tests share: queues on the chosen engine, a clock that stands still, SQL and programs in other processes."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from engines import ENGINES, run_sql
from hypothesis import settings
from membox_queue import _native
from programs import PROGRAMS

settings.register_profile("suite", deadline=None, database=None, derandomize=True)
settings.load_profile("suite")

# A shell that runs the tests in the background lets them ignore Ctrl-C, and every program that they start with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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


def pytest_addoption(parser):
    parser.addoption("--engine", choices=ENGINES, default="sqlite", help="the engine that the tests run on")


@pytest.fixture
def engine(request, tmp_path):
    """The test's own database on the engine that `--engine` chose."""
    return ENGINES[request.config.getoption("engine")](tmp_path)


@pytest.fixture
def address(engine):
    """The address of the test's database, for programs in other processes and for `Queue` itself."""
    return engine.address


@pytest.fixture
def path(address):
    """The file of the test's database, for tests that are about SQLite."""
    return address


@pytest.fixture
def open_queue(engine):
    """Open a queue of the test's database by name and options; every one is closed at the end."""
    opened = []

    def open_queue(name="ingest", **options):
        queue = engine.open(name, **options)
        opened.append(queue)
        return queue

    yield open_queue
    for queue in reversed(opened):
        queue.close()


@pytest.fixture
def open_async_queue(engine):
    """Make an AsyncQueue of the test's database; the test closes it, in its own event loop."""
    return engine.open_async


@pytest.fixture
def aqueue(open_async_queue):
    return open_async_queue()


@pytest.fixture
def queue(open_queue):
    return open_queue()


@pytest.fixture
def clock(fake_clock):
    return Clock(fake_clock)


@pytest.fixture(scope="session")
def sql():
    """Run one statement of SQLite in another process and return its rows; this process may have the file open."""
    return run_sql


@pytest.fixture
def start():
    """Start a Python program with pipes for its input and output; none outlives the test.

    The program is a file of `PROGRAMS`, or its source if it has a line or two.
    """
    started = []

    def start(program, *arguments, **options):
        named = [program] if isinstance(program, Path) else ["-c", program]
        command = [sys.executable, *named, *map(str, arguments)]
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
        process = start(PROGRAMS / "hold_the_write_lock.py", path)
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


@pytest.fixture
def background(until):
    """Run a call in a thread and return its future; what is left at the end is stopped."""
    begun = []
    with ThreadPoolExecutor(8) as pool:

        def background(call, *arguments, **options):
            future = pool.submit(call, *arguments, **options)
            begun.append((call.__self__, future))
            return future

        yield background

        def is_over(owner, future):
            owner.stop()
            return future.done()

        for owner, future in begun:
            until(lambda owner=owner, future=future: is_over(owner, future))


@pytest.fixture
def working(queue, background):
    """Let the queue's `work` run in a thread."""
    return lambda handler, **plan: background(queue.work, handler, **plan)
