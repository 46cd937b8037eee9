"""Hold something in one of many ways, then print the value of each line read: ADDRESS HOW LEASE."""

import gc
import multiprocessing
import os
import subprocess
import sys
import time

from membox_queue import Queue

address, how, lease = sys.argv[1], sys.argv[2], float(sys.argv[3])
queue = Queue(address, lease=lease)


def say(text):
    print(text, flush=True)


if how == "lease":
    assert queue.acquire_worker_lease(ttl=lease)
elif how == "lock":
    lock = queue.lock("nightly", ttl=lease)
    assert lock.acquire()
elif how == "many":
    items = queue.claim_many(100)
elif how == "two queues":
    other = Queue(address, "other", lease=lease)
    items = [queue.claim(), other.claim()]
elif how == "batch":
    items = queue.claim_group()
else:
    item = queue.claim()

if how == "with":
    item.__enter__()
elif how == "closed":
    queue.close()
elif how == "dropped":
    del item
    gc.collect()
elif how == "closed and dropped":
    queue.close()
    del item, queue
    gc.collect()
elif how == "fork":
    # A child that has not run yet still has everything of its parent's.
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, b".")
        time.sleep(600)
        os._exit(0)
    os.read(reading, 1)
    say(f"child {pid}")
elif how == "multiprocessing":
    context = multiprocessing.get_context("fork")
    running = context.Event()
    child = context.Process(target=lambda: running.set() or time.sleep(600))
    child.start()
    running.wait()
    say(f"child {child.pid}")
elif how == "subprocess":
    child = subprocess.Popen(["sleep", "600"], close_fds=False, stdout=subprocess.DEVNULL)
    say(f"child {child.pid}")
elif how == "drain":
    queue.release(item)
    queue.drain(lambda item: say("held") or time.sleep(600))
elif how == "work":
    queue.release(item)
    queue.work(lambda item: say("held") or time.sleep(600), concurrency=2)

say("held")
for line in sys.stdin:
    say(eval(line))
