"""Enqueue items one by one for threads that wait for a moment each: PATH claim|work. Prints what each item took."""

import random
import sys
import threading
import time

from membox_queue import Queue, Worker

path, how = sys.argv[1:]
queue = Queue(path)
claimed = threading.Semaphore(0)
is_over = threading.Event()


def note(item):
    claimed.release()


def claims(seed):
    moments = random.Random(seed)
    while not is_over.is_set():
        if item := queue.claim(wait=moments.choice([0.001, 0.003, 0.01, 10])):
            with item:
                note(item)


def works(seed):
    moments = random.Random(seed)
    while not is_over.is_set():
        worker = Worker(path, {"ingest": note})
        worker.start()
        time.sleep(moments.choice([0.001, 0.01, 0.1]))
        worker.stop()


count = {"claim": 8, "work": 4}[how]
threads = [threading.Thread(target={"claim": claims, "work": works}[how], args=(seed,)) for seed in range(count)]
for thread in threads:
    thread.start()
for number in range(200):
    began = time.monotonic()
    queue.enqueue(number)
    assert claimed.acquire(timeout=30)
    print(time.monotonic() - began)
is_over.set()
queue.enqueue_many(range(count))
for thread in threads:
    thread.join()
