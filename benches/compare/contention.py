"""Four processes on one file: throughput, fairness, and whether each item was delivered exactly once."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compare import documents
from compare.adapter import BrokenError
from compare.libraries import load
from compare.throughput import RATE

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from compare.adapter import Adapter, Sync
    from compare.documents import Size

PROCESSES = 4
UNFAIRNESS = "largest / smallest share"
LOST = "lost"
DOUBLED = "doubled"
BUSY = "busy errors"
PATIENCE = 60.0
DRY_LOOKS = 20


@dataclass
class Shift:
    """What one process did."""

    started: float = 0.0
    ended: float = 0.0
    delivered: list[int] = field(default_factory=list)
    busy: int = 0


def contend(
    library: type[Adapter], folder: Path, sync: Sync, size: Size, count: int, seconds: float, *, loops: bool = False
) -> dict[str, float]:
    """Let the processes claim and finish until the time is over or nothing is left; with `loops`, by their workers."""
    # A library that cannot be opened like this says so here, not in four processes.
    library(folder, sync).close()
    (library.fill_for_work if loops else library.fill)(folder, documents.many(size, count))
    # Spawned, not forked: a fork would carry open files and locks of the libraries measured before.
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    pipes, processes = [], []
    for _ in range(PROCESSES):
        mine, theirs = context.Pipe(duplex=False)
        target = _loop if loops else _work
        process = context.Process(target=target, args=(library.name, folder, sync, seconds, barrier, theirs))
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    try:
        shifts = [_receive(pipe) for pipe in pipes]
    finally:
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.kill()
    return _judge(library, folder, count, shifts)


def _receive(pipe: Connection) -> Shift:
    if not pipe.poll(PATIENCE):
        raise BrokenError("a process did not come back")
    try:
        shift: Shift = pipe.recv()
    except EOFError:
        raise BrokenError("a process died") from None
    return shift


def _work(name: str, folder: Path, sync: Sync, seconds: float, barrier: Barrier, pipe: Connection) -> None:
    """Claim and finish in a process of its own."""
    library = load(name)
    shift = Shift()
    with library(folder, sync) as queue:
        barrier.wait(PATIENCE)
        shift.started = shift.ended = time.monotonic()
        dry = 0
        while time.monotonic() < shift.started + seconds and dry < DRY_LOOKS:
            try:
                claimed = queue.claim()
            except library.busy_errors:
                shift.busy += 1
                continue
            if claimed is None:
                dry += 1
                time.sleep(0.001)
                continue
            dry = 0
            shift.delivered.append(documents.number_of(claimed.document))
            _finish(queue, claimed.receipt, shift)
            shift.ended = time.monotonic()
    pipe.send(shift)


def _loop(name: str, folder: Path, sync: Sync, seconds: float, barrier: Barrier, pipe: Connection) -> None:
    """Run the library's own worker in a process of its own."""
    shift = Shift()

    def handle(document: documents.Document) -> None:
        shift.delivered.append(documents.number_of(document))
        shift.ended = time.monotonic()

    with load(name)(folder, sync) as queue:
        barrier.wait(PATIENCE)
        shift.started = shift.ended = time.monotonic()
        queue.work(handle, lambda: time.monotonic() < shift.started + seconds)
    pipe.send(shift)


def _finish(queue: Adapter, receipt: object, shift: Shift) -> None:
    while True:
        try:
            return queue.finish(receipt)
        except type(queue).busy_errors:
            shift.busy += 1


def _judge(library: type[Adapter], folder: Path, count: int, shifts: list[Shift]) -> dict[str, float]:
    delivered = [number for shift in shifts for number in shift.delivered]
    distinct = len(set(delivered))
    census = library.census(folder)
    if census.finished not in (distinct, None):
        raise BrokenError(f"{distinct} items were delivered and {census.finished} are finished")
    shares = [len(shift.delivered) for shift in shifts]
    elapsed = max(shift.ended for shift in shifts) - min(shift.started for shift in shifts)
    return {
        RATE: distinct / elapsed,
        UNFAIRNESS: max(shares) / max(min(shares), 1),
        LOST: count - distinct - census.waiting,
        DOUBLED: len(delivered) - distinct,
        BUSY: sum(shift.busy for shift in shifts),
    }
