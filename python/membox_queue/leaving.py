"""What happens when the interpreter exits: waits end, and no thread comes back from native code."""

import atexit
import concurrent.futures.thread  # noqa: F401 - its threads are joined after our waits have ended
import threading

from membox_queue import _native

# Waits end before threads are joined, and no thread comes back from native code after that.
getattr(threading, "_register_atexit", atexit.register)(_native.end_waits)
atexit.register(_native.be_last)
