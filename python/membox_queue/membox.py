"""membox's own queue module over `Queue`: its names, arguments and dicts, so that it can be put in its place.

`QueueOps` is a mixin for any object that has a `db_path`; `drain_queue` and `spawn_worker` are membox's worker. The
differences to membox's module, all of them cures, are in `docs/membox.md`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

from membox_queue.errors import SimulatedCrash
from membox_queue.loops.raised import meaning
from membox_queue.queue import Queue
from membox_queue.workers.spawn import launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from membox_queue._native import Item, WorkerLoop

__all__ = ["DEFAULT_LEASE_TTL", "DEFAULT_MAX_RETRIES", "QueueItem", "QueueOps", "drain_queue", "spawn_worker"]

DEFAULT_LEASE_TTL: float = 60.0
"""Seconds after which a worker's heartbeat counts no more."""
DEFAULT_MAX_RETRIES: int = 3
"""Failures after which an item stays failed."""

STATUSES = ("pending", "processing", "done", "failed")
SLICE = 0.5
"""A wait in native code comes back to Python at least this often, so that Ctrl-C is seen."""


class QueueItem(TypedDict):
    """A claimed item."""

    id: int
    content: str
    project: str | None
    source_path: str | None
    doc_date: str | None
    retries: int


class Ingest:
    """What one object has of its queue: the queue, and the receipts of what it has claimed."""

    opening = threading.Lock()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.queue = Queue(path)
        self.queue._share_leases_with_membox()
        self.receipts: dict[int, Item] = {}

    def settle(self, queue_id: int, end: Any) -> None:
        """End a claim of this object; an id that it did not claim, or has lost, changes nothing."""
        item = self.receipts.get(queue_id)
        if item is not None:
            end(item)
            # Meanwhile another thread may have claimed it anew.
            if self.receipts.get(queue_id) is item:
                del self.receipts[queue_id]


class QueueOps:
    """The ingest queue and the worker lease of an object that has a `db_path`."""

    db_path: str | os.PathLike[str]

    @property
    def _ingest(self) -> Ingest:
        found: Ingest | None = self.__dict__.get("_ingest_queue")
        if found is None:
            # Opened late: the file is membox's to make.
            with Ingest.opening:
                found = self.__dict__.get("_ingest_queue")
                if found is None:
                    found = self.__dict__["_ingest_queue"] = Ingest(self.db_path)
        return found

    def close_queue(self) -> None:
        """End this object's use of the queue and give a worker lease back; the next call opens it anew."""
        with Ingest.opening:
            found: Ingest | None = self.__dict__.pop("_ingest_queue", None)
        if found is not None:
            found.queue.close()

    def enqueue_ingest(
        self,
        content: str,
        *,
        project: str | None = None,
        source_path: str | None = None,
        doc_date: str | None = None,
    ) -> int:
        """Add a raw document and return its id. When it returns, the document is on disk."""
        if not isinstance(content, str):
            raise TypeError(f"content must be str, not {type(content).__qualname__}")
        return self._ingest.queue.enqueue(content, project=project, source_path=source_path, doc_date=doc_date)

    def claim_next_pending(self) -> QueueItem | None:
        """Take the oldest pending item; None when there is none. It is renewed until it is marked."""
        ingest = self._ingest
        item = ingest.queue.claim()
        if item is None:
            return None
        item.__enter__()
        ingest.receipts[item.id] = item
        return {
            "id": item.id,
            "content": text_of(item.content),
            "project": item.project,
            "source_path": item.source_path,
            "doc_date": item.doc_date,
            "retries": item.retries,
        }

    def mark_done(self, queue_id: int) -> None:
        """Record that an item claimed by this object is done."""
        ingest = self._ingest
        ingest.settle(queue_id, ingest.queue.mark_done)

    def mark_failed(self, queue_id: int, error: str) -> None:
        """Record that an item claimed by this object failed, and count it."""
        ingest = self._ingest
        ingest.settle(queue_id, lambda item: ingest.queue.mark_failed(item, str(error)))

    def retry_failed(self, max_retries: int = DEFAULT_MAX_RETRIES) -> int:
        """Return failed items with fewer failures than that to pending. Return how many."""
        return self._ingest.queue.retry_failed(max_retries)

    def queue_counts(self) -> dict[str, int]:
        """How many items are pending, processing, done and failed."""
        counts = self._ingest.queue.counts()
        return {status: counts[status] for status in STATUSES}

    def pending_ingest_count(self) -> int:
        """How many items are pending or processing."""
        return self._ingest.queue.pending()

    def recent_failures(self, limit: int = 5) -> list[dict[str, object]]:
        """The latest failures, newest first."""
        if limit == 0:
            return []
        return [
            {
                "id": item.id,
                "source_path": item.source_path,
                "error": item.error,
                "retries": item.retries,
                "finished_at": f"{item.finished_at:%Y-%m-%d %H:%M:%S}" if item.finished_at else None,
            }
            for item in self._ingest.queue.failures(limit)
        ]

    def acquire_worker_lease(self, ttl: float = DEFAULT_LEASE_TTL) -> bool:
        """Take the right to be the one worker. False while another process holds it live.

        Taking over a lease that has expired, cannot be read or is this process's own returns every item in process to
        pending, in the same transaction.
        """
        return self._ingest.queue._take_over_worker_lease(max(ttl, 0.0))

    def refresh_worker_lease(self) -> None:
        """Renew the heartbeat, unless another process has the lease."""
        self._ingest.queue._refresh_process_lease(DEFAULT_LEASE_TTL)

    def release_worker_lease(self) -> None:
        """Give the lease back, unless another process has it."""
        self._ingest.queue._release_process_lease()

    def worker_is_alive(self, ttl: float = DEFAULT_LEASE_TTL) -> bool:
        """Whether any process's heartbeat is younger than that."""
        return self._ingest.queue._is_worker_younger_than(max(ttl, 0.0))


def drain_queue(agent: Any, *, retry_failed: bool = False, max_retries: int = DEFAULT_MAX_RETRIES) -> dict[str, int]:
    """Handle everything in the queue of `agent.store` by `agent.ingest_content`, and return what was done.

    An item fails when that raises, or when all of its chunks failed: with the first error. Returns how many items were
    `done`, `failed` and `retried` (returned to pending first); three zeros when another worker is alive. Claims and
    lease are renewed by a native thread, and the lease is released in the transaction that finds nothing left.
    """
    store: QueueOps = agent.store
    queue = store._ingest.queue
    with working(queue) as loop:
        if loop is None:
            return {"done": 0, "failed": 0, "retried": 0}
        retried = store.retry_failed(max_retries) if retry_failed else 0
        tally: Counter[str] = Counter()
        step = loop.next(0)
        while step.next != "over":
            if step.next == "wait":
                loop.wait(0, SLICE)
                step = loop.next(0)
                continue
            items = step.items
            raised, error = ingest(agent, items[0])
            if raised is not None:
                # It goes on its way, with the item counted as a lost claim if the program exits, else released.
                loop.stop()
                if meaning(raised) == "exited":
                    loop.failed(0, items, raised)
                raise raised
            step = loop.done(0, [None]) if error is None else loop.failed(0, items, error)
            tally.update(step.ended)
    return {"done": tally["done"], "failed": tally["failed"] + tally["postponed"], "retried": retried}


def ingest(agent: Any, item: Item) -> tuple[BaseException | None, BaseException | str | None]:
    """Let the agent take in one item; what ends the drain, else why the item failed, or None."""
    try:
        results = agent.ingest_content(
            text_of(item.content),
            source=item.source_path or "",
            project=item.project,
            source_path=item.source_path,
            doc_date=item.doc_date,
        )
        errors = [result["error"] for result in results if "error" in result]
        return None, str(errors[0]) if errors and len(errors) == len(results) else None
    except BaseException as error:
        return (None, said(error)) if meaning(error) == "failed" else (error, None)


def said(error: BaseException) -> BaseException | str:
    """What membox stores of an exception: its text; one that has none is described by its type."""
    try:
        return str(error) or error
    except BaseException:
        return error


BUSY: set[tuple[int, str]] = set()
"""The files that are being drained in this process: all of it is one worker to membox's lease."""


@contextlib.contextmanager
def working(queue: Queue) -> Iterator[WorkerLoop | None]:
    """Be the one worker of a queue; yield None if there is another, including in this process."""
    key = (os.getpid(), str(queue.path or id(queue)))
    with Ingest.opening:
        is_free = key not in BUSY
        BUSY.add(key)
    if not is_free:
        yield None
        return
    try:
        loop = queue._begin_loop(
            [],
            slots=1,
            exclusive=True,
            takes_over=True,
            stays=False,
            linger=0.0,
            limit=None,
            whole_groups=False,
            max_runtime=None,
            ttl=DEFAULT_LEASE_TTL,
        )
        try:
            yield loop
        except SimulatedCrash:
            if loop is not None:
                loop.abandon()
            raise
        finally:
            # The claimed item and the lease are released.
            if loop is not None:
                loop.close()
    finally:
        BUSY.discard(key)


def spawn_worker(db_path: str | os.PathLike[str], *, command: Sequence[str] | None = None) -> bool:
    """Start a detached worker for a file unless one is running or starting. Return whether one was started.

    By default the worker is `membox process`. Its output goes to `<db_path>.worker.log`.
    """
    path = os.fspath(db_path)
    with Queue(path) as queue:
        if queue.path is None:
            raise ValueError("an in-memory queue lives in one process; a worker needs a file")
        if queue.worker_is_alive():
            return False
        default = [sys.executable, "-m", "membox.cli", "process", "--db", path]
        return launch(queue, queue.path, lambda _: list(command or default), dict(os.environ))


def text_of(content: Any) -> str:
    """A content as the table has it, which is all that membox knows."""
    if isinstance(content, str):
        return content
    if isinstance(content, bytes):
        return base64.b64encode(content).decode()
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
