"""Work on a queue, and say when the loop has begun: ADDRESS."""

import sys
import threading
import time

from membox_queue import Queue

queue = Queue(sys.argv[1])


def tell_when_it_has_begun():
    while not any(loop.has_begun for loop in tuple(queue._loops)):
        time.sleep(0.005)
    print("working", flush=True)


threading.Thread(target=tell_when_it_has_begun, daemon=True).start()
queue.work(lambda item: None)
