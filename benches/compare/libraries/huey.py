"""huey: the storage under SqliteHuey, without its tasks and results."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from huey import SqliteHuey
from huey.consumer import Worker
from huey.consumer_options import config_defaults
from huey.storage import SqliteStorage

from compare.adapter import BUSY_SECONDS, Adapter, Claimed, Sync, UnsupportedError
from compare.documents import Document, from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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
        "work is a worker of its consumer with a real task",
    )
    delivers_at_least_once = False
    seed_sql = "INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)"
    census_sql = "SELECT count(*), 0, NULL FROM task"

    def __init__(self, folder: Path, sync: Sync, *, threads: bool = False) -> None:
        self.folder, self.sync = folder, sync
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

    @classmethod
    def with_task(cls, folder: Path, handler: Callable[[Document], object]) -> tuple[SqliteHuey, Any]:
        huey = SqliteHuey(QUEUE, filename=str(folder / cls.file_name), timeout=BUSY_SECONDS)

        @huey.task(name="handle")
        def handle(document: Document) -> None:
            handler(document)

        return huey, handle

    @classmethod
    def fill_for_work(cls, folder: Path, documents: Sequence[Document]) -> None:
        huey, task = cls.with_task(folder, lambda _: None)
        huey.storage.conn.execute("PRAGMA synchronous = NORMAL")
        for document in documents:
            task(document)
        huey.storage.close()

    def work(self, handler: Callable[[Document], object], goes_on: Callable[[], bool]) -> None:
        huey, _ = self.with_task(self.folder, handler)
        huey.storage.conn.execute(f"PRAGMA synchronous = {self.sync}")
        delays = (DEFAULTS["initial_delay"], DEFAULTS["max_delay"], DEFAULTS["backoff"])
        worker = Worker(huey, threading.Event(), *delays)
        while goes_on():
            worker.loop()
        huey.storage.close()

    def close(self) -> None:
        self.storage.close()

    @classmethod
    def seed_row(cls, document: Document, *, finished: bool) -> tuple[Any, ...]:
        if finished:
            raise UnsupportedError("finished items are deleted")
        return (QUEUE, to_text(document).encode())


LIBRARY = Huey
