"""Print what a file holds and whether it is sound: PATH."""

import json
import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1], timeout=30)


def count(table):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


try:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    print(
        json.dumps(
            {
                "items": count("ingest_queue"),
                "notes": count("notes") if "notes" in tables else 0,
                "integrity": connection.execute("PRAGMA integrity_check(1)").fetchone()[0],
            }
        )
    )
except sqlite3.DatabaseError as error:
    print(json.dumps({"items": 0, "notes": 0, "integrity": str(error)}))
