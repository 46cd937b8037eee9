"""Call verbs, each between a write that begins and one that ends it: PATH."""

import os
import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
queue.enqueue_many(["a", "b"])
item = queue.claim()
for name, call in {
    "enqueue": lambda: queue.enqueue("x"),
    "enqueue_many": lambda: queue.enqueue_many(["x", "y"]),
    "mark_done": lambda: queue.mark_done(item),
    "claim": queue.claim,
}.items():
    os.write(1, f"begin {name}".encode())
    call()
    os.write(1, f"end {name}".encode())
