"""The interpreter's exit: waits end, and no thread comes back from native code."""

import atexit
import concurrent.futures.thread  # noqa: F401 - its threads are joined after our waits have ended
import threading

from membox_queue import _native

has_begun = threading.Event()
"""Set once the interpreter exits: only the thread that ends it goes on."""


def begin() -> None:
    """End the waits, before threads are joined."""
    has_begun.set()
    _native.end_waits()


getattr(threading, "_register_atexit", atexit.register)(begin)
# After that no thread comes back from native code.
atexit.register(_native.keep_other_threads_out)
