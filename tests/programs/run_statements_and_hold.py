"""Run statements and keep what they lock until a line is read: PATH STATEMENT…."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    cursor = connection.execute(statement)
    row = cursor.fetchone()
print("held", flush=True)
input()
