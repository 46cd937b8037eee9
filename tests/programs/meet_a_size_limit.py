"""Write beyond the allowed size of a file, then go on: PATH READING VERB."""

import os
import resource
import sqlite3
import sys

from membox_queue import Queue, StorageError

path, is_reading, verb = sys.argv[1:]
queue = Queue(path, busy_timeout=0.5)
reader = sqlite3.connect(path, isolation_level=None)
if is_reading == "here":
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM ingest_queue").fetchone()
queue.enqueue("second")
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path + "-wal") + 5_000, limits[1]))
try:
    queue.enqueue("x" * 100_000)
except StorageError as error:
    print("refused:", "disk I/O error" in str(error), flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
print(getattr(queue, verb)(*(["third"] if verb == "enqueue" else [])), flush=True)
print(queue.enqueue("last"), queue.counts()["pending"], flush=True)
