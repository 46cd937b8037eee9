"""Exit while a thread handles items without end: ADDRESS KIND VERB."""

import itertools
import sys
import threading
import time

from membox_queue import Queue

address, kind, verb = sys.argv[1:]
queue = Queue(address, durability="normal")
handled = itertools.count()


def handler(item):
    next(handled)
    queue.enqueue("and so on")


queue.enqueue("x")
calls = {
    "work": lambda: queue.work(handler),
    "work4": lambda: queue.work(handler, concurrency=4),
    "drain": lambda: queue.drain(handler),
}
threading.Thread(target=calls[verb], daemon=kind == "daemon").start()
while next(handled) < 20:
    time.sleep(0.005)
print("leaving", flush=True)
