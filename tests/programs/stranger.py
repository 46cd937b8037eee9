"""Read a file as another program does, and try to write to it: PATH."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
connection.execute("SELECT count(*) FROM ingest_queue").fetchone()
try:
    connection.execute("BEGIN IMMEDIATE")
    print("wrote")
except sqlite3.OperationalError:
    print("locked")
connection.close()
