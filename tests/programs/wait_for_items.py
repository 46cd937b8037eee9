"""Wait for an item whenever a line is read: ADDRESS HOW."""

import sys
import time

from membox_queue import Queue

address, how = sys.argv[1:]
queue = Queue(address, "ingest")
print("ready", flush=True)
for line in sys.stdin:
    before = time.process_time()
    if how == "claim":
        item = queue.claim(wait=float(line))
    elif how == "work":
        got = []
        queue.work(got.append, limit=1)
        item = got[0]
    used = time.process_time() - before
    print(item and item.content, item and item.retries, time.time(), used, flush=True)
    if item and how == "claim":
        queue.mark_done(item)
