"""Print the share of a core that an idle wait takes: ADDRESS HOW."""

import contextlib
import sys
import threading
import time

from membox_queue import Queue

address, how = sys.argv[1:]
queue, other = Queue(address), Queue(address)
lock = other.lock("held")
lock.acquire()
later = queue.enqueue("later", delay=3600)
calls = {
    "claim": lambda: queue.claim(wait=0.7),
    "wait": lambda: queue.wait(later, timeout=0.7),
    "work": lambda: queue.work(print, concurrency=4),
    "lock": lambda: queue.lock("held", wait=0.7).acquire(),
    "linger": lambda: queue.drain(print, linger=7200, concurrency=4),
}
threading.Timer(0.7, queue.stop).start()
wall, cpu = time.monotonic(), time.process_time()
with contextlib.suppress(TimeoutError):
    calls[how]()
print((time.process_time() - cpu) / (time.monotonic() - wall))
