"""Exit while a thread waits: ADDRESS CALL KIND."""

import sys
import threading
import time

from membox_queue import QueueClosedError
from prepared_waits import CALLS
from slow_end import Slow

wait, kind = CALLS[sys.argv[2]], sys.argv[3]
slow = Slow()
began = threading.Event()


def call():
    began.set()
    try:
        wait()
    except QueueClosedError:
        print("closed", flush=True)


threading.Thread(target=call, daemon=kind == "daemon").start()
began.wait()
time.sleep(0.05)
print("leaving", flush=True)
