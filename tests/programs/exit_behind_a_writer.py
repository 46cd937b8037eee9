"""Exit while a thread waits for the write lock: PATH KIND."""

import sys
import threading
import time

from membox_queue import Queue, QueueError
from slow_end import Slow

slow = Slow()
queue = Queue(sys.argv[1], busy_timeout=300)
print("open", flush=True)
input()
began = threading.Event()


def enqueue():
    began.set()
    try:
        queue.enqueue("x")
    except QueueError as error:
        print(type(error).__name__, flush=True)


threading.Thread(target=enqueue, daemon=sys.argv[2] == "daemon").start()
began.wait()
time.sleep(0.1)
print("leaving", flush=True)
