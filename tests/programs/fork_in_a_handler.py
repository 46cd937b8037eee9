"""Work, and fork a child in the handler that outlives the loop: ADDRESS."""

import os
import sys
import time

from membox_queue import Queue


def handler(item):
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    print(pid, flush=True)
    time.sleep(600)


Queue(sys.argv[1]).work(handler)
