"""Hold a read transaction until a line is read: PATH."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
print(connection.execute("SELECT count(*) FROM ingest_queue").fetchone()[0], flush=True)
input()
