"""Exit with an item, a lock and the worker lease held: ADDRESS."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
item = queue.claim()
item.__enter__()
lock = queue.lock("nightly")
lock.acquire()
queue.acquire_worker_lease()
print(item.id, flush=True)
