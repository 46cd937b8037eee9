"""Enqueue with a spawned worker, again and again: ADDRESS ROUNDS."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1], durability="normal")
for number in range(int(sys.argv[2])):
    # A worker that is just leaving must see it, or another must come.
    queue.wait(queue.enqueue(number, spawn="spawned_handlers:fast"), timeout=60)
print("all handled")
