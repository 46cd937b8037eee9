"""Stop the queue in a child that a handler forked: ADDRESS."""

import os
import sys
import threading

from membox_queue import Queue

queue = Queue(sys.argv[1])


def handler(item):
    child = os.fork()
    if child == 0:
        queue.stop()
        os._exit(any(thread.name == "membox-queue-grace" for thread in threading.enumerate()))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


print(queue.drain(handler))
