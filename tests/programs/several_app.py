"""An application with handlers for several queues, and one without a queue."""

import os
import signal
import time
from pathlib import Path

from membox_queue import Queue

queue = Queue("own.db")
empty = Queue("own.db", "empty")
elsewhere = Queue("elsewhere.db", "far")


@queue.handler(name="sums")
def add(a: int, b: int) -> int:
    return a + b


@queue.handler(name="mail")
def send(to: str) -> str:
    return to.upper()


@elsewhere.handler
def far(name: str) -> str:
    return name


def plain(item):
    return ["plain", item.content]


def where(item):
    return os.getpid()


def together(item):
    """Wait until as many processes as the content says are in this handler."""
    Path(f"arrived-{os.getpid()}").touch()
    deadline = time.monotonic() + 60
    while len(list(Path().glob("arrived-*"))) < item.content:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return os.getpid()


def die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def bad(item):
    raise ValueError(item.content)
