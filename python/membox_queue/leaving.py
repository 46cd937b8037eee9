"""What happens when the interpreter exits: waits end, and no thread comes back from native code."""

import atexit
import concurrent.futures.thread  # noqa: F401 - its threads are joined after our waits have ended
import threading

from membox_queue import _native

has_begun = threading.Event()
"""Set once the interpreter exits: the thread that ends it goes on alone."""
is_last = threading.Event()
"""Set once other threads do not come back from native code any more, so that there is no waiting for them."""


def begin() -> None:
    """End the waits, before threads are joined."""
    has_begun.set()
    _native.end_waits()


def be_last() -> None:
    """Let no thread come back from native code after that."""
    is_last.set()
    _native.be_last()


getattr(threading, "_register_atexit", atexit.register)(begin)
atexit.register(be_last)
