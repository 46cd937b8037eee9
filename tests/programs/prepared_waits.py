"""Calls that wait for minutes, by name; the programs that interrupt them or exit during them import it."""

import sys

from membox_queue import Queue

address = sys.argv[1]
queue, other = Queue(address), Queue(address)
full = Queue(address, "full", max_pending=1)
full.enqueue("x")
later = queue.enqueue("later", delay=1800)
held = other.lock("held")
held.acquire()

CALLS = {
    "claim": lambda: queue.claim(wait=300),
    "claim_many": lambda: queue.claim_many(3, wait=300),
    "wait": lambda: queue.wait(later, timeout=300),
    "lock": lambda: queue.lock("held", wait=300).acquire(),
    "enqueue": lambda: full.enqueue("x", wait=300),
    "work": lambda: queue.work(print),
    "work4": lambda: queue.work(print, concurrency=4),
    "drain": lambda: queue.drain(print, linger=3600),
    "drain4": lambda: queue.drain(print, linger=3600, concurrency=4),
}
