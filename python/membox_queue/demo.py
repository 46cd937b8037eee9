"""The demo: documents are accepted at once, a worker is killed in the middle of one, and nothing is lost.

An application keeps its notes in an SQLite file and searches them with its own `sqlite3`. Documents come in faster than
the slow step (here a pause, in earnest an LLM) can turn them into notes, so they wait in a queue in the same file.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from membox_queue import Item, Queue

if TYPE_CHECKING:
    from collections.abc import Iterator

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
SLOW_STEP = 0.9
"""Seconds that the model takes for a document."""

DOCUMENTS = {
    "decisions.md": "# Decisions\nWe keep the queue and the notes in one SQLite file, so a backup is one copy.",
    "meeting.md": "# Meeting\nWe measure how long the handover of a document takes; the queue must not wait.",
    "incident.md": "# Incident\nThe worker was killed on Tuesday. The queue gave its document to the next one.",
    "ideas.md": "# Ideas\nEmbed every note, and let the agents search the queue of open questions.",
    "agents.md": "# Agents\nThe reader looks after ingestion, the finder after search, the keeper after the queue.",
    "retro.md": "# Retro\nNothing was lost this week. Next week we delete the old broker.",
}


FULL_TEXT = "CREATE VIRTUAL TABLE notes USING fts5 (title, text)"
PLAIN = "CREATE TABLE notes (title TEXT, text TEXT)"
MATCHING = "SELECT title FROM notes WHERE notes MATCH ? ORDER BY rowid"
LIKE = "SELECT title FROM notes WHERE text LIKE '%' || ? || '%' ORDER BY rowid"


def has_full_text_search() -> bool:
    """Whether Python's own sqlite3 was built with FTS5."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(FULL_TEXT)
        except sqlite3.OperationalError:
            return False
    return True


@contextlib.contextmanager
def notes(file: str | Path) -> Iterator[sqlite3.Connection]:
    """The application's own connection, by Python's own sqlite3, to the file that the queue is in."""
    with contextlib.closing(sqlite3.connect(file, timeout=30)) as connection, connection:
        yield connection


def digest(item: Item) -> dict[str, int]:
    """Handle one document: the slow step, then a note in the application's own table. Twice is as good as once."""
    for percent in range(0, 100, 10):
        item.set_progress(percent / 100, "asking the model")
        time.sleep(SLOW_STEP / 10)
    title, _, text = item.content.removeprefix("# ").partition("\n")
    with notes(os.environ["MEMBOX_QUEUE_DEMO"]) as connection:
        connection.execute("DELETE FROM notes WHERE rowid = ?", (item.id,))
        connection.execute("INSERT INTO notes (rowid, title, text) VALUES (?, ?, ?)", (item.id, title, text))
    return {"words": len(text.split())}


def create_tables(file: Path) -> None:
    """What the application has, with or without the queue."""
    if not has_full_text_search():
        print("  (this Python's sqlite3 has no full-text search, FTS5: the demo compares words instead)")
    with notes(file) as connection:
        connection.execute("CREATE TABLE searches (word TEXT, found INTEGER)")
        connection.execute(FULL_TEXT if has_full_text_search() else PLAIN)


def search(queue: Queue, word: str) -> None:
    """Answer a question from the notes so far, and print how many documents are still pending."""
    with notes(str(queue.path)) as connection:
        question = MATCHING if has_full_text_search() else LIKE
        titles = [title for (title,) in connection.execute(question, (word,))]
        connection.execute("INSERT INTO searches VALUES (?, ?)", (word, len(titles)))
    print(f"search {word!r}: {', '.join(titles)}")
    if note := queue.coverage_note():
        print(f"  {note}")


def watch(queue: Queue, ids: list[int]) -> None:
    """Show these documents as they end."""
    for id in ids:
        item = queue.wait(id, timeout=60)
        bar = "█" * queue.counts()["done"] + "░" * queue.pending()
        print(f"  {bar} {item.source_path} {item.status}, attempt {item.attempt}")


def kill_in_mid_document(queue: Queue) -> bool:
    """Kill the worker while it is at a document, and this process writes to the same file with its own sqlite3."""
    deadline = time.monotonic() + 60
    while queue.pending() and time.monotonic() < deadline:
        worker, running = queue.stats()["worker"], queue.running()
        if worker and running and (running[0].progress or 0) >= 0.4:
            with notes(str(queue.path)) as connection:
                connection.execute("INSERT INTO searches VALUES ('while the worker is killed', 0)")
                os.kill(worker["pid"], KILL)
            print(f"killed worker {worker['pid']} with {running[0].source_path} {running[0].progress:.0%} done")
            return True
        time.sleep(0.01)
    print("the worker was never seen in the middle of a document: this machine is busy, try again")
    return False


def reckon(queue: Queue, ids: list[int], searches: int) -> bool:
    """Count what became of the documents, in the file itself."""
    items = [queue.get(id) for id in ids]
    done = sum(item is not None and item.status == "done" for item in items)
    with notes(str(queue.path)) as connection:
        noted = {row for (row,) in connection.execute("SELECT rowid FROM notes")}
        kept = connection.execute("SELECT count(*) FROM searches").fetchone()[0]
    lost = len(set(ids) - noted) + searches - kept
    redelivered = sum(attempt.ending == "lost" for id in ids for attempt in queue.history(id))
    faults = queue.check()["faults"]
    print(
        f"{len(ids)} accepted · {done} done · {lost} lost · {redelivered} redelivered · "
        f"integrity {'ok' if not faults else faults[0]}"
    )
    return done == len(ids) and not lost and not faults


def run(file: Path) -> bool:
    """Run the whole demo in one file. Return whether nothing was lost."""
    os.environ["MEMBOX_QUEUE_DEMO"] = str(file)
    with Queue(file) as queue:
        create_tables(file)
        ids, took = [], []
        for name, text in DOCUMENTS.items():
            started = time.perf_counter()
            ids.append(queue.enqueue(text, project="demo", source_path=name))
            took.append((time.perf_counter() - started) * 1000)
        print(f"accepted {len(ids)} documents, each in {min(took):.1f} to {max(took):.1f} ms; they are on disk")

        queue.spawn_worker("membox_queue.demo:digest")
        print(f"spawned a worker; the model takes {SLOW_STEP} s for a document")
        watch(queue, ids[:3])
        search(queue, "queue")

        killed = kill_in_mid_document(queue)
        while killed and not queue.spawn_worker("membox_queue.demo:digest"):
            time.sleep(0.01)  # until the system has taken the killed one down
        print("spawned another" if killed else "it went on")
        watch(queue, ids[3:])
        search(queue, "queue")
        while queue.worker_is_alive():
            time.sleep(0.01)
        return reckon(queue, ids, searches=3 if killed else 2)


def main(keep: Path | None = None) -> int:
    """Run the demo in its own file. Return the exit code: 0 if nothing was lost."""
    getattr(sys.stdout, "reconfigure", lambda **_: None)(line_buffering=True)
    if keep is not None:
        if keep.exists():
            raise FileExistsError(f"{keep} exists already; the demo needs a file of its own")
        ended_well = run(keep.resolve())
        print(f"look at it: membox-queue status --db {keep}")
        return 0 if ended_well else 1
    with tempfile.TemporaryDirectory(prefix="membox-queue-demo-", ignore_cleanup_errors=True) as folder:
        return 0 if run(Path(folder) / "memory.db") else 1


if __name__ == "__main__":
    sys.exit(main())
