"""How many items a second the loops handle, by the number of slots: threads and asyncio, with an empty handler.

python benches/loops.py
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from membox_queue import AsyncQueue, Queue

ITEMS = 3_000
ROUNDS = 5
SLOTS = (1, 4, 16)


def nothing(item: object) -> None:
    pass


async def nothing_async(item: object) -> None:
    pass


def threads(path: Path, durability: str, slots: int) -> float:
    with Queue(path, durability=durability) as queue:
        queue.enqueue_many(range(ITEMS))
        started = time.perf_counter()
        report = queue.drain(nothing, concurrency=slots)
        assert report.done == ITEMS, report
        return ITEMS / (time.perf_counter() - started)


def tasks(path: Path, durability: str, slots: int) -> float:
    async def main() -> float:
        async with AsyncQueue(path, durability=durability) as queue:
            await queue.enqueue_many(range(ITEMS))
            started = time.perf_counter()
            report = await queue.drain(nothing_async, concurrency=slots)
            assert report.done == ITEMS, report
            return ITEMS / (time.perf_counter() - started)

    return asyncio.run(main())


def main() -> None:
    measured: dict[tuple[str, str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for durability in ("normal", "full"):
                for name, run in (("threads", threads), ("asyncio", tasks)):
                    for slots in SLOTS:
                        path = Path(folder) / f"{number}-{durability}-{name}-{slots}.db"
                        measured.setdefault((durability, name, slots), []).append(run(path, durability, slots))
    print("| durability | loop | " + " | ".join(f"{slots} slots" for slots in SLOTS) + " |")
    print("|---|---|" + "---|" * len(SLOTS))
    for durability in ("normal", "full"):
        for name in ("threads", "asyncio"):
            cells = [f"{statistics.median(measured[durability, name, slots]):,.0f}" for slots in SLOTS]
            print(f"| {durability} | {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
