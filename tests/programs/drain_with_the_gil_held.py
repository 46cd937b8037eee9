"""Drain with a handler that keeps the GIL until a byte is read: ADDRESS."""

import ctypes
import sys

from membox_queue import Queue


def handler(item):
    print("handling", flush=True)
    # A call through PyDLL keeps the GIL: no other thread of this Python runs until it returns.
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
    return item.lost


print(Queue(sys.argv[1], lease=0.3).drain(handler).done)
