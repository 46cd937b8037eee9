"""Handle items while the GIL is held for five leases each: ADDRESS LEASE ITEMS."""

import ctypes
import sys

from membox_queue import Queue

address, lease, items = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])


def handler(item):
    # A call through PyDLL keeps the GIL: no other thread of this Python runs until it returns.
    ctypes.PyDLL(None).usleep(int(5 * lease * 1_000_000))
    return item.lost


with Queue(address, lease=lease) as queue:
    report = queue.work(handler, limit=items)
    print(report.done, report.lost)
