"""Ingestion: hand a folder of notes over, let a worker of its own index them, and search what is there so far.

    python notes.py add ~/notes
    python notes.py search sqlite

Queue and index live in one file, `notes.db`. `add` returns at once and starts a worker, which ends by itself.
"""

import math
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from membox_queue import DuplicateItemError, GiveUp, Queue, Retry

FILE = "notes.db"


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(FILE)
    connection.execute("CREATE TABLE IF NOT EXISTS lines (source TEXT, number INTEGER, text TEXT)")
    connection.commit()
    return connection


def index(item):
    """The slow step, run by the worker. It may run twice for one note, so it replaces what is there."""
    lines = [line.strip() for line in item.content.splitlines()]
    if not any(lines):
        raise GiveUp("the note is empty")
    rows = [(item.source_path, number, line) for number, line in enumerate(lines, 1) if line]  # ask the model here
    with closing(connect()) as connection, connection:
        connection.execute("DELETE FROM lines WHERE source = ?", (item.source_path,))
        connection.executemany("INSERT INTO lines VALUES (?, ?, ?)", rows)
    return {"lines": len(rows)}


def add(folder: Path) -> None:
    with Queue(FILE) as queue:
        # Stored in the file, so it also holds for the worker, which is another process.
        queue.configure(retry=Retry(max=3, base=5))
        accepted = 0
        for path in sorted(folder.resolve().glob("**/*.md")):
            # Each version of each note once, also after it is done; the versions of one note in order.
            version = f"{path}@{path.stat().st_mtime_ns}"
            try:
                queue.enqueue_file(path, key=version, key_ttl=math.inf, on_duplicate="raise", group=str(path))
                accepted += 1
            except DuplicateItemError:
                pass
            except ValueError as error:
                print(f"left out: {error}")
        # After all of them, so that the worker is looked for once.
        started = bool(accepted) and queue.spawn_worker("notes:index", linger=0)
        print(f"accepted {accepted} notes{', started a worker' if started else ''}")


def search(word: str) -> None:
    with Queue(FILE) as queue, closing(connect()) as connection:
        found = connection.execute(
            "SELECT source, number, text FROM lines WHERE text LIKE ? ORDER BY source, number", (f"%{word}%",)
        )
        for source, number, text in found:
            print(f"{Path(source).name}:{number}: {text}")
        if note := queue.coverage_note(noun="note"):
            print(f"({note})")
        for item in queue.failures():
            print(f"(not indexed: {Path(item.source_path or '?').name}: {item.error})")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["add", folder]:
            add(Path(folder))
        case ["search", word]:
            search(word)
        case _:
            sys.exit(__doc__)
