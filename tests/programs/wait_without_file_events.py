"""Wait where the system refuses file events: ADDRESS LIMIT."""

import sys
import time

from membox_queue import Queue

address, what = sys.argv[1:]
with open(f"/proc/sys/user/max_inotify_{what}", "w") as limit:
    limit.write("0")
queue = Queue(address)
before = time.process_time()
queue.claim(wait=0.5)
print((time.process_time() - before) / 0.5, flush=True)
for _ in range(3):
    item = queue.claim(wait=60)
    print(time.time(), flush=True)
    queue.mark_done(item)
