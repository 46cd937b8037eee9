"""Claim an item and hang: ADDRESS MILLISECONDS."""

import sys
import threading

from membox_queue import Queue, _native

address, ms = sys.argv[1:]
_native.set_clock(int(ms))
queue = Queue(address)
item = queue.claim()
with item:
    print(item.worker, flush=True)
    threading.Event().wait()
