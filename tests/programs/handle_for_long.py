"""Handle an item until a line is read: ADDRESS."""

import sys

from membox_queue import Queue


def handler(item):
    print("handling", flush=True)
    input()
    return item.lost


print(Queue(sys.argv[1], lease=1.5).drain(handler).done)
