"""Drain as a worker of membox does; the content hang hangs: PATH."""

import sys
import time

from membox_queue.membox import QueueOps, drain_queue


class Store(QueueOps):
    def __init__(self, path):
        self.db_path = path


class Agent:
    def __init__(self, path):
        self.store = Store(path)

    def ingest_content(self, content, **more):
        print("begun", content, flush=True)
        if content == "hang":
            for _ in range(6000):  # in slices: a signal that comes just before a sleep does not end it
                time.sleep(0.1)
        return []


print("ended", drain_queue(Agent(sys.argv[1])), flush=True)
