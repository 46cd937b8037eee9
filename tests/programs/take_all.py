"""Claim and finish items until there are none: ADDRESS."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
print("ready", flush=True)
input()
while item := queue.claim():
    assert queue.mark_done(item, result=item.content)
    print(item.id, flush=True)
