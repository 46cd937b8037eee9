"""An agent hands documents over and goes on; a worker turns them into knowledge; a query says what is still missing.

Run it twice: the queue and the notes live in one file, `handoff.db`, beside each other.
"""

import sqlite3
import time

from membox_queue import Item, Queue

FILE = "handoff.db"

DOCUMENTS = {
    "plan.md": "We decided to keep the queue and the data in one SQLite file.",
    "meeting.md": "Next week we measure how long the handover takes.",
    "retro.md": "The worker died on Tuesday. Nothing was lost; the item came back.",
}


def digest(item: Item) -> dict[str, int]:
    """Stands for the slow step, and writes to the application's own table in the same file."""
    time.sleep(0.05)
    words = item.content.split()
    with sqlite3.connect(FILE) as connection:
        connection.execute("INSERT INTO notes (source, words) VALUES (?, ?)", (item.source_path, len(words)))
    connection.close()
    return {"words": len(words)}


def answer(queue: Queue) -> None:
    """What a query shows: what is there so far, and an honest footer."""
    connection = sqlite3.connect(FILE)
    for source, words in connection.execute("SELECT source, words FROM notes ORDER BY source"):
        print(f"  {source}: {words} words")
    connection.close()
    if note := queue.coverage_note():
        print(f"  ({note})")


def main() -> None:
    connection = sqlite3.connect(FILE)
    connection.execute("CREATE TABLE IF NOT EXISTS notes (source TEXT PRIMARY KEY, words INTEGER)")
    connection.execute("DELETE FROM notes")
    connection.commit()
    connection.close()

    with Queue(FILE) as queue:
        started = time.perf_counter()
        for name, text in DOCUMENTS.items():
            queue.enqueue(text, source_path=name)
        print(f"handed over {len(DOCUMENTS)} documents in {(time.perf_counter() - started) * 1000:.1f} ms")
        answer(queue)

        report = queue.drain(digest)
        print(f"drained: {report.done} done, {report.failed} failed")
        answer(queue)


if __name__ == "__main__":
    main()
