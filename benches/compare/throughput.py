"""One process, one thread: put, put in batches, claim + finish, end to end, drain."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from compare import documents
from compare.adapter import BrokenError

if TYPE_CHECKING:
    from pathlib import Path

    from compare.adapter import Adapter, Sync
    from compare.documents import Document, Size

RATE = "per second"
BYTES = "bytes"
BATCH = 100


def check(library: type[Adapter], folder: Path, *, waiting: int, finished: int) -> None:
    """Read the file with SQL, so that what the library says about itself is not needed."""
    census = library.census(folder)
    if (census.waiting, census.in_work) != (waiting, 0) or census.finished not in (finished, None):
        raise BrokenError(f"{census} where {waiting} waiting and {finished} finished were expected")


def put(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    items = documents.many(size, count)
    with library(folder, sync) as queue:
        started = time.perf_counter()
        for item in items:
            queue.put(item)
        seconds = time.perf_counter() - started
    check(library, folder, waiting=count, finished=0)
    return {RATE: count / seconds}


def put_batches(
    library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int, batch: int = BATCH
) -> dict[str, float]:
    batches = [documents.many(size, batch, first) for first in range(0, count, batch)]
    with library(folder, sync) as queue:
        started = time.perf_counter()
        for each in batches:
            queue.put_many(each)
        seconds = time.perf_counter() - started
    check(library, folder, waiting=batch * len(batches), finished=0)
    return {RATE: batch * len(batches) / seconds}


def claim_and_finish(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    items = documents.many(size, count)
    library.fill(folder, items)
    with library(folder, sync) as queue:
        started = time.perf_counter()
        for item in items:
            _take(queue, item)
        seconds = time.perf_counter() - started
    check(library, folder, waiting=0, finished=count)
    return {RATE: count / seconds}


def end_to_end(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    items = documents.many(size, count)
    with library(folder, sync) as queue:
        started = time.perf_counter()
        for item in items:
            queue.put(item)
            _take(queue, item)
        seconds = time.perf_counter() - started
    check(library, folder, waiting=0, finished=count)
    return {RATE: count / seconds}


def drain(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    items = documents.many(size, count)
    library.fill(folder, items)
    seen: list[Document] = []
    with library(folder, sync) as queue:
        started = time.perf_counter()
        # The emptiest handler that still proves what it was given.
        queue.drain(seen.append)
        seconds = time.perf_counter() - started
    if seen != items:
        raise BrokenError(f"the handler saw {len(seen)} documents of {count}, or not in their order")
    check(library, folder, waiting=0, finished=count)
    return {RATE: count / seconds}


def work(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    items = documents.many(size, count)
    library.fill_for_work(folder, items)
    seen: list[Document] = []
    with library(folder, sync) as queue:
        started = time.perf_counter()
        queue.work(seen.append, lambda: len(seen) < count)
        seconds = time.perf_counter() - started
    if seen != items:
        raise BrokenError(f"the handler saw {len(seen)} documents of {count}, or not in their order")
    check(library, folder, waiting=0, finished=count)
    return {RATE: count / seconds}


def space(library: type[Adapter], folder: Path, size: Size, count: int) -> dict[str, float]:
    """Bytes of the closed file for each waiting item, beyond those of an empty queue."""
    library(folder, "NORMAL").close()
    empty = (folder / library.file_name).stat().st_size
    library.fill(folder, documents.many(size, count))
    check(library, folder, waiting=count, finished=0)
    return {BYTES: ((folder / library.file_name).stat().st_size - empty) / count}


def _take(queue: Adapter, expected: Document) -> None:
    claimed = queue.claim()
    if claimed is None or claimed.document != expected:
        raise BrokenError("a claim did not give the oldest document as it was put")
    queue.finish(claimed.receipt)
