"""Run one SQL statement on a file and print its rows as JSON: PATH STATEMENT PARAMETERS."""

import json
import sqlite3
import sys

path, statement, params = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None, timeout=30)
connection.text_factory = lambda raw: raw.decode(errors="replace")
print(json.dumps(connection.execute(statement, json.loads(params)).fetchall(), default=bytes.hex))
connection.close()
