"""Call the queue while the interpreter exits: ADDRESS WHEN WHAT."""

import atexit
import sys
import threading

address, when, what = sys.argv[1:]
calls = {
    "drain": lambda: queue.drain(lambda item: None).done,
    "drain4": lambda: queue.drain(lambda item: None, concurrency=4).done,
    "wait": lambda: queue.claim(wait=0.01).id,
    "worker": lambda: worker.stop() and 1,
    "join": lambda: (asked.set(), thread.join(), 1)[2],
}


def register():
    atexit.register(lambda: print(calls[what](), flush=True))


if when == "before":
    register()
from membox_queue import Queue, Worker  # noqa: E402 - registered before or after

queue = Queue(address)
if when == "after":
    register()
if what == "worker":
    worker = Worker(address, {"other": print})
    worker.start()
if what == "join":
    asked = threading.Event()

    def enqueue():
        while not asked.is_set():
            other.enqueue("and so on")

    other = Queue(address, "other", durability="normal")
    thread = threading.Thread(target=enqueue, daemon=True)
    thread.start()
