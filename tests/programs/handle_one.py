"""Handle one item: ADDRESS."""

import sys

from membox_queue import Queue

with Queue(sys.argv[1]) as queue:
    print("ready", flush=True)
    input()
    print(queue.drain(lambda item: item.content * 2).done)
