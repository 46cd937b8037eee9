"""Claim an item when a line is read: ADDRESS."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1], lease=1.5)
print("ready", flush=True)
input()
print("claims", flush=True)
print(queue.claim(), flush=True)
