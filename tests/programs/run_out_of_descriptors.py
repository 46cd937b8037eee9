"""Open a queue when no descriptor is left: PATH."""

import os
import resource
import sys

from membox_queue import Queue, StorageError

resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
opened = []
try:
    while True:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
try:
    Queue(sys.argv[1])
except StorageError as error:
    print(error)
for _ in range(10):
    os.close(opened.pop())
print(Queue(sys.argv[1]).enqueue("x"))
