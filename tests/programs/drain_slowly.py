"""Drain with a short lease and a handler that waits for a line: ADDRESS."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1], lease=0.5)


def handler(item):
    print("handling", flush=True)
    input()
    return item.lost


print(queue.drain(handler))
