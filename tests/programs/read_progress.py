"""Print the progress of item 1: ADDRESS."""

import sys

from membox_queue import Queue

item = Queue(sys.argv[1]).get(1)
print(item.progress, item.progress_note)
