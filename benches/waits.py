"""What waits of one process cost: threads, descriptors, and a drain beside them.

python benches/waits.py [waits ...]
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from membox_queue import AsyncQueue, Queue

ITEMS = 2_000
ROUNDS = 3
WAITS = (0, 1_000, 10_000)


def cost() -> tuple[int, int]:
    """The threads and descriptors of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def drain(path: Path) -> float:
    """Microseconds an item takes in a drain of this process with an empty handler."""
    with Queue(path, "busy", durability="normal") as queue:
        queue.enqueue_many(range(ITEMS))
        began = time.perf_counter()
        report = queue.drain(lambda item: None)
        assert report.done == ITEMS, report
        return 1e6 * (time.perf_counter() - began) / ITEMS


async def round_of(path: Path, kind: str, many: int) -> tuple[int, int, float, float]:
    """One round beside so many waits: threads and descriptors more than without, the drain, CPU while idle."""
    async with AsyncQueue(path, durability="normal") as queue:
        ids = await queue.enqueue_many([f"document {number}" for number in range(many)], spawn=None)
        if kind == "claim":
            await queue.mark_done_many(await queue.claim_many(many or 1))
        before = cost()
        calls = [queue.wait(id) if kind == "wait" else queue.claim(wait=60) for id in ids]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.5 + many / 10_000)
        threads, descriptors = (now - then for now, then in zip(cost(), before, strict=True))
        idle = time.process_time()
        await asyncio.sleep(1)
        idle = 1000 * (time.process_time() - idle)
        took = await asyncio.to_thread(drain, path)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return threads, descriptors, took, idle


def main() -> None:
    """Print the table."""
    counts = [int(argument) for argument in sys.argv[1:]] or WAITS
    measured: dict[tuple[str, int], list[tuple[int, int, float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for kind in ("wait", "claim"):
                for many in counts:
                    path = Path(folder) / f"{kind}-{many}-{number}.db"
                    measured.setdefault((kind, many), []).append(asyncio.run(round_of(path, kind, many)))
    print("| waits | threads more | descriptors more | drain, µs an item | CPU while idle, ms/s |")
    print("|---|---|---|---|---|")
    for (kind, many), rounds in measured.items():
        threads, descriptors, took, idle = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {many:,} × `{kind}` | {threads:.0f} | {descriptors:.0f} | {took:.0f} | {idle:.1f} |")


if __name__ == "__main__":
    main()
