"""Drain with a handler that hangs: ADDRESS."""

import sys
import threading

from membox_queue import Queue


def handler(item):
    print("handling", flush=True)
    threading.Event().wait()


Queue(sys.argv[1]).drain(handler)
