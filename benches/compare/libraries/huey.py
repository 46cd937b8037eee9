"""huey: the storage under SqliteHuey, without its tasks and results."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from huey.consumer_options import config_defaults
from huey.storage import SqliteStorage

from compare.adapter import BUSY_SECONDS, Adapter, Claimed, Sync, UnsupportedError
from compare.documents import Document, from_text, to_text

if TYPE_CHECKING:
    from pathlib import Path

QUEUE = "documents"
DEFAULTS = dict(config_defaults)


class Huey(Adapter):
    name = "huey"
    distribution = "huey"
    notes = (
        "an item is deleted when it is claimed and finishing does nothing: a worker that dies loses its item",
        "`SqliteStorage` alone; tasks, results and pickling would come on top",
        "its option knows synchronous=FULL and OFF, so NORMAL is set on its `conn`",
        "the wait is the polling of its consumer, with the consumer's defaults",
    )
    delivers_at_least_once = False
    seed_sql = "INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)"
    census_sql = "SELECT count(*), 0, NULL FROM task"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.storage = SqliteStorage(QUEUE, filename=str(folder / self.file_name), timeout=BUSY_SECONDS)
        self.storage.conn.execute(f"PRAGMA synchronous = {sync}")

    def put(self, document: Document) -> None:
        self.storage.enqueue(to_text(document).encode())

    def claim(self) -> Claimed | None:
        data = self.storage.dequeue()
        return None if data is None else Claimed(from_text(data.decode()), None)

    def finish(self, receipt: Any) -> None:
        """There is nothing left to finish."""

    def wait(self, seconds: float) -> Claimed | None:
        deadline = time.monotonic() + seconds
        delay = DEFAULTS["initial_delay"]
        while (claimed := self.claim()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(delay, left))
            delay = min(delay * DEFAULTS["backoff"], DEFAULTS["max_delay"])
        return claimed

    def close(self) -> None:
        self.storage.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        if finished:
            raise UnsupportedError("finished items are deleted")
        return (QUEUE, to_text(document).encode())


LIBRARY = Huey
