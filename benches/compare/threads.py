"""Several threads of one process: eight that put, and one that puts beside pure Python."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from compare import documents
from compare.throughput import RATE, check

if TYPE_CHECKING:
    from pathlib import Path

    from compare.adapter import Adapter, Sync
    from compare.documents import Document, Size

THREADS = 8
ONE = "1 thread per second"
EIGHT = "8 threads per second"
GAIN = "8 threads / 1 thread"
PACE = "pace the other thread keeps"


def put_from_threads(library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int) -> dict[str, float]:
    """The same number of puts by one thread and, right after, by eight."""
    rates = []
    for threads in (1, THREADS):
        subfolder = folder / str(threads)
        subfolder.mkdir()
        rates.append(_rate(library, subfolder, sync, size, count // threads, threads))
    return {ONE: rates[0], EIGHT: rates[1], GAIN: rates[1] / rates[0]}


def _rate(library: type[Adapter], folder: Path, sync: Sync, size: Size, each: int, threads: int) -> float:
    start = threading.Barrier(threads)
    shared = None if library.one_per_thread else library(folder, sync, threads=True)
    if shared is None:
        # The first one makes the table; eight at once would measure that.
        library(folder, sync).close()

    def work(items: list[Document]) -> tuple[float, float]:
        # A connection of sqlite3 belongs to the thread that opened it.
        queue = shared or library(folder, sync)
        start.wait()
        started = time.perf_counter()
        for item in items:
            queue.put(item)
        ended = time.perf_counter()
        if shared is None:
            queue.close()
        return started, ended

    with ThreadPoolExecutor(threads) as pool:
        spans = list(pool.map(work, [documents.many(size, each, index * each) for index in range(threads)]))
    if shared is not None:
        shared.close()
    check(library, folder, waiting=each * threads, finished=0)
    return each * threads / (max(ended for _, ended in spans) - min(started for started, _ in spans))


def put_beside_python(
    library: type[Adapter], folder: Path, sync: Sync, size: Size, most: int, seconds: float
) -> dict[str, float]:
    """Puts per second while another thread computes in pure Python, which gives the GIL away only when it must.

    A library that keeps the GIL puts fast here, at the expense of the other thread; so its pace is measured too.
    """
    items = documents.many(size, most)
    stop = threading.Event()
    turns = 0

    def compute() -> None:
        nonlocal turns
        while not stop.is_set():
            for _ in range(1_000):
                turns += 1

    stopper = threading.Timer(seconds / 2, stop.set)
    stopper.start()
    started = time.perf_counter()
    compute()
    alone = turns / (time.perf_counter() - started)
    stop.clear()
    turns = 0
    with library(folder, sync) as queue:
        thread = threading.Thread(target=compute)
        thread.start()
        try:
            started = time.perf_counter()
            count = 0
            while count < most and time.perf_counter() - started < seconds:
                queue.put(items[count])
                count += 1
            elapsed = time.perf_counter() - started
            kept = turns / elapsed / alone
        finally:
            stop.set()
            thread.join()
    check(library, folder, waiting=count, finished=0)
    return {RATE: count / elapsed, PACE: kept}
