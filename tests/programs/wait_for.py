"""Wait for the end of an item, and print it: ADDRESS ID."""

import sys

from membox_queue import Queue

with Queue(sys.argv[1]) as queue:
    awaited = queue._await_end()
    print("waiting", flush=True)
    item = queue.wait(int(sys.argv[2]), timeout=30)
    print(item.status, repr(item.result))
