"""Compact a file: PATH."""

import sys

from membox_queue import Queue

with Queue(sys.argv[1], durability="normal", busy_timeout=60) as queue:
    queue.compact()
