"""Run a loop inside the handler of another, each with its own grace: ADDRESS HOW."""

import sys
import time

from membox_queue import Queue

outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue("x")


def handler(item):
    if sys.argv[2] == "stop":
        outer.stop()
    print("handling\n", end="", flush=True)
    while True:
        time.sleep(0.01)


def middle(item):
    inner.drain(handler, grace=300)
    print("went on after its grace", flush=True)


print(outer.drain(middle, grace=0.05), inner.counts()["pending"], flush=True)
