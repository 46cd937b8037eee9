"""Open the file of each line that is read, and enqueue there."""

import sys

from membox_queue import Queue

print("ready", flush=True)
for line in sys.stdin:
    try:
        with Queue(line.rstrip()) as queue:
            print(queue.enqueue("x"), flush=True)
    except Exception as error:
        print(repr(error), flush=True)
