"""How much of its pace a pure-Python thread keeps while four threads are in queue calls.

python benches/gil.py
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from membox_queue import Queue

ROUNDS = 7
SECONDS = 1.0
THREADS = 4
DOCUMENT = "x" * 5_000


def pace() -> float:
    """Additions per second of a pure-Python loop."""
    deadline = time.perf_counter() + SECONDS
    count = 0
    while time.perf_counter() < deadline:
        for _ in range(1_000):
            count += 1
    return count / SECONDS


def pace_beside_queue_calls(path: Path, durability: str) -> tuple[float, float]:
    stop = threading.Event()
    calls = [0] * THREADS

    def work(index: int) -> None:
        with Queue(path, f"q{index}", durability=durability) as queue:
            while not stop.is_set():
                queue.enqueue(DOCUMENT)
                item = queue.claim()
                assert item is not None
                queue.mark_done(item)
                calls[index] += 3

    threads = [threading.Thread(target=work, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    result = pace()
    stop.set()
    for thread in threads:
        thread.join()
    return result, sum(calls) / SECONDS


def main() -> None:
    print(f"| durability | pace kept beside {THREADS} threads (lowest to highest) | their queue calls per second |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for durability in ("full", "normal"):
            kept, calls = [], []
            for round_number in range(ROUNDS):
                alone = pace()
                beside, rate = pace_beside_queue_calls(Path(folder) / f"{durability}{round_number}.db", durability)
                kept.append(beside / alone)
                calls.append(rate)
            span = f"{statistics.median(kept):.2f} ({min(kept):.2f} to {max(kept):.2f})"
            print(f"| {durability} | {span} | {statistics.median(calls):,.0f} |")


if __name__ == "__main__":
    sys.exit(main())
