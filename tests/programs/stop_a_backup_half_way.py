"""Stop a backup half-way: PATH COPY."""

import glob
import os
import signal
import sys

from membox_queue import Queue


def partial():
    return set(glob.glob(sys.argv[2] + ".*partial"))


others, has_stopped = partial(), False


def stop_half_way(*_):
    global has_stopped
    if partial() - others and not has_stopped:
        has_stopped = True
        os.write(1, b"half\n")
        os.read(0, 1)


queue = Queue(sys.argv[1])
signal.signal(signal.SIGALRM, stop_half_way)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
try:
    queue.backup(sys.argv[2])
    print("whole", flush=True)
except FileExistsError as error:
    print("refused:", error, flush=True)
