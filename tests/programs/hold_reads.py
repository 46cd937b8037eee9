"""Count rows inside and after a read transaction that is held until a line is read: PATH."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)


def count():
    return connection.execute("SELECT count(*) FROM ingest_queue").fetchone()[0]


connection.execute("BEGIN")
print(count(), flush=True)
input()
print(count(), flush=True)
connection.execute("COMMIT")
print(count(), flush=True)
input()
