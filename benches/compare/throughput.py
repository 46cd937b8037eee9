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


def put_batches(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    batches = [documents.many(size, BATCH, first) for first in range(0, count, BATCH)]
    with library(folder, sync) as queue:
        started = time.perf_counter()
        for batch in batches:
            queue.put_many(batch)
        seconds = time.perf_counter() - started
    check(library, folder, waiting=BATCH * len(batches), finished=0)
    return {RATE: BATCH * len(batches) / seconds}


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


def _take(queue: Adapter, expected: Document) -> None:
    claimed = queue.claim()
    if claimed is None or claimed.document != expected:
        raise BrokenError("a claim did not give the oldest document as it was put")
    queue.finish(claimed.receipt)
