"""Claim what is due at each moment that is read: ADDRESS."""

import sys

from membox_queue import Queue, _native

queue = Queue(sys.argv[1], durability="normal")
print("ready", flush=True)
for line in sys.stdin:
    _native.set_clock(int(line))
    count = 0
    while item := queue.claim():
        count += queue.mark_done(item)
    print(count, flush=True)
