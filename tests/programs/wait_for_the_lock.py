"""Wait for a write lock that this process itself holds: PATH."""

import sqlite3
import sys

from membox_queue import Queue

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
queue = Queue(sys.argv[1], busy_timeout=60)
connection.execute("BEGIN IMMEDIATE")
try:
    print("waiting", flush=True)
    queue.enqueue("x")
except KeyboardInterrupt:
    connection.execute("ROLLBACK")
    print("interrupted", queue.pending(), flush=True)
