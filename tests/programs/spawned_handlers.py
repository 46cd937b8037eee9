"""Handlers for spawned workers."""

import os
import sys
import time
from pathlib import Path

from membox_queue import RetryLater


def fast(item):
    return None


def where(item):
    print("to the log", item.content, flush=True)
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "worker": item.worker,
        "lease": (item.lease_until - item.started_at).total_seconds(),
        "stdin": sys.stdin.read(),
    }


def gated(item):
    while not Path(item.content).exists():
        time.sleep(0.005)
    return os.getpid()


def later(item):
    if item.attempt == 1:
        raise RetryLater(0.3)
    return os.getpid()


def failing(item):
    raise LookupError(item.content)


def surroundings(item):
    return {"path": sys.path, "handed on": os.environ["PYTHONPATH"].split(os.pathsep)}


number = 5


class Box:
    @staticmethod
    def handler(item):
        return "boxed"
