"""Let a handler end after its item was claimed again: ADDRESS."""

import sys
import threading
import time

from membox_queue import Queue

queue = Queue(sys.argv[1])
began, free = threading.Event(), threading.Event()


def handler(item):
    began.set()
    free.wait()
    return "late"


thread = threading.Thread(target=lambda: print(queue.work(handler, grace=0.01)))
thread.start()
began.wait()
queue.stop()
while queue.get(1).status != "pending":
    time.sleep(0.005)
item = queue.claim()
free.set()
thread.join()
print(queue.mark_done(item, result="new"), queue.get(1).result)
