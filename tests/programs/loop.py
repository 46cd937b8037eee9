"""Run a loop whose handlers wait for a gate: ADDRESS VERB CONCURRENCY GRACE GATE."""

import signal
import sys
import threading
import time
from pathlib import Path

from membox_queue import Queue

address, verb, concurrency, grace, gate = sys.argv[1:]
queue = Queue(address)
numbers = (signal.SIGINT, signal.SIGTERM)
before = [signal.getsignal(number) for number in numbers]


def handler(item):
    print("handling\n", end="", flush=True)
    while not Path(gate).exists():
        time.sleep(0.005)


def tell_when_it_stops():
    while not any(loop.has_begun and loop.native.stopped for loop in tuple(queue._loops)):
        time.sleep(0.005)
    print("stopping\n", end="", flush=True)


threading.Thread(target=tell_when_it_stops, daemon=True).start()
try:
    report = getattr(queue, verb)(handler, concurrency=int(concurrency), grace=float(grace))
finally:
    is_restored = [signal.getsignal(number) for number in numbers] == before
    print(f"restored {is_restored}\n", end="", flush=True)
print(f"{report}\n", end="", flush=True)
