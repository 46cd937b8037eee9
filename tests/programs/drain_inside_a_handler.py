"""Get a signal during a drain inside a handler: ADDRESS."""

import os
import signal
import sys

from membox_queue import Queue

outer, inner = Queue(sys.argv[1]), Queue(sys.argv[1], "inner")
inner.enqueue_many(range(3))


def handler(item):
    report = inner.drain(lambda item: os.kill(os.getpid(), signal.SIGTERM))
    print(report.done, report.stopped)


report = outer.drain(handler)
print(report.done, report.stopped)
