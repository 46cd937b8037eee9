"""Claim as many items as a rate allows at one moment: ADDRESS MILLISECONDS COUNT."""

import sys

from membox_queue import Queue, Rate, _native

address, ms, count = sys.argv[1:]
_native.set_clock(int(ms))
queue = Queue(address, rate=Rate(int(count), per=60))
print("ready", flush=True)
input()
while item := queue.claim():
    print(item.id, flush=True)
