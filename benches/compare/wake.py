"""How soon a consumer in another process has what was put, and what it costs while it waits."""

from __future__ import annotations

import multiprocessing
import random
import statistics
import time
from typing import TYPE_CHECKING

from compare.adapter import BrokenError
from compare.libraries import load
from compare.throughput import check

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from compare.adapter import Adapter

P50 = "p50 ms"
P99 = "p99 ms"
IDLE = "idle CPU, ms per second"
PATIENCE = 30.0
GAPS = (0.03, 0.08)
"""Seconds between two puts: long enough that every consumer is waiting again, and never in step with a poll."""


def wake(library: type[Adapter], folder: Path, wakes: int, idle_seconds: float) -> dict[str, float]:
    """Time from the call of put in one process to the item in the hand of the other."""
    with library(folder, "NORMAL") as queue:
        # Says at once that a library cannot wait, before a process is started for it.
        queue.wait(0)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_consume, args=(library.name, folder, wakes, idle_seconds, theirs))
    process.start()
    theirs.close()
    try:
        _receive(mine)
        chance = random.Random(6)
        with library(folder, "NORMAL") as queue:
            for number in range(wakes):
                time.sleep(chance.uniform(*GAPS))
                queue.put({"number": number, "sent": time.monotonic()})
            latencies = _receive(mine)
            idle = _receive(mine)[0]
    finally:
        process.join(5)
        if process.is_alive():
            process.kill()
    check(library, folder, waiting=0, finished=wakes)
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {P50: cuts[49] * 1e3, P99: cuts[98] * 1e3, IDLE: idle * 1e3}


def _receive(pipe: Connection) -> list[float]:
    if not pipe.poll(PATIENCE):
        raise BrokenError("the consumer did not answer")
    try:
        answer: list[float] = pipe.recv()
    except EOFError:
        raise BrokenError("the consumer died") from None
    return answer


def _consume(name: str, folder: Path, wakes: int, idle_seconds: float, pipe: Connection) -> None:
    """Wait for every item, then for nothing. The monotonic clock is one for all processes of a machine."""
    with load(name)(folder, "NORMAL") as queue:
        pipe.send([])
        latencies = []
        for number in range(wakes):
            claimed = queue.wait(PATIENCE)
            now = time.monotonic()
            if claimed is None or not isinstance(claimed.document, dict) or claimed.document["number"] != number:
                raise BrokenError(f"wake {number} did not bring its item")
            latencies.append(now - claimed.document["sent"])
            queue.finish(claimed.receipt)
        pipe.send(latencies)
        # The first wait ends what the last item has set in motion; the second is only waiting.
        queue.wait(0.2)
        spent, started = time.process_time(), time.monotonic()
        if queue.wait(idle_seconds) is not None:
            raise BrokenError("an item came from nowhere")
        pipe.send([(time.process_time() - spent) / (time.monotonic() - started)])
