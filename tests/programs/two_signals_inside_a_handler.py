"""Get two signals during a drain inside a handler: ADDRESS."""

import os
import signal
import sys
import time

from membox_queue import Queue

outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue("x")


def handler(item):
    os.kill(os.getpid(), signal.SIGTERM)
    while not item.stopping:
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(3000):  # in slices: a signal that comes just before a sleep does not end it
        time.sleep(0.1)


outer.drain(lambda item: inner.drain(handler))
