"""Live on for two seconds after the interpreter has ended: ADDRESS."""

import ctypes
import sys
import threading

from membox_queue import Queue

queue = Queue(sys.argv[1], busy_timeout=300)
print("open", flush=True)
input()
# As a library that has much to tidy up: after the interpreter is gone, the process lives on for two seconds.
libc = ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(2_000_000), None)
began = threading.Event()
threading.Thread(target=lambda: (began.set(), queue.enqueue("x")), daemon=True).start()
began.wait()
