"""Change settings: ADDRESS SETTINGS."""

import json
import sys

from membox_queue import Queue

queue = Queue(sys.argv[1])
queue.configure(**json.loads(sys.argv[2]))
queue.close()
