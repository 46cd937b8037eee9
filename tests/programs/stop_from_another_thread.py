"""Stop a loop of the main thread from another thread: ADDRESS CONCURRENCY."""

import sys
import threading

from membox_queue import Queue

queue = Queue(sys.argv[1])
stopper = threading.Thread(target=queue.stop)
print(queue.work(lambda item: stopper.start(), concurrency=int(sys.argv[2])))
