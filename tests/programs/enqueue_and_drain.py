"""Enqueue items and drain them unless a worker is alive: ADDRESS [EXCLUSIVE]."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
exclusive = sys.argv[2:] != ["False"]
for number in range(100):
    queue.enqueue(number)
    if not queue.worker_is_alive():
        queue.drain(lambda item: None, exclusive=exclusive)
