"""Write pairs of numbers to a table of its own until it is killed: PATH."""

import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("CREATE TABLE pairs (a INTEGER, b INTEGER)")
print("writing", flush=True)
number = 0
while True:
    number += 1
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO pairs VALUES (?, 0)", (number,))
    connection.execute("UPDATE pairs SET b = a WHERE a = ?", (number,))
    connection.execute("COMMIT")
