"""Cancel an item: ADDRESS ID."""

import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
assert queue.cancel(int(sys.argv[2]))
queue.close()
