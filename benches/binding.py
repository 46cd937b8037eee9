"""What a call costs more from Python than from Rust: small items in memory, in alternating rounds.

python benches/binding.py        (needs cargo: it builds and runs benches/verbs.rs)
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time

from membox_queue import Queue
from verbs import microseconds, rust_bench

ROUNDS = 9
COUNT = 20_000
CONTENT = "x" * 16
JOBS = {"enqueue": 1, "claim + mark_done": 2, "drain, an item": 1}
"""How many calls each job makes."""


def python_costs() -> list[float]:
    with Queue(":memory:", durability="normal") as queue:
        started = time.perf_counter()
        for _ in range(COUNT):
            queue.enqueue(CONTENT)
        costs = [microseconds(COUNT, started)]
        started = time.perf_counter()
        while (item := queue.claim()) is not None:
            queue.mark_done(item)
        costs.append(microseconds(COUNT, started))
        for _ in range(COUNT):
            queue.enqueue(CONTENT)
        started = time.perf_counter()
        queue.drain(lambda item: None)
        return [*costs, microseconds(COUNT, started)]


def main() -> None:
    program = rust_bench()
    rust, python = [], []
    for _ in range(ROUNDS):
        ran = subprocess.run([program, "--memory"], stdout=subprocess.PIPE, text=True, check=True)
        rust.append(json.loads(ran.stdout))
        python.append(python_costs())
    print("| job, 16 bytes, in memory | from Rust, µs | from Python, µs | more per call, µs |")
    print("|---|---|---|---|")
    for index, (job, calls) in enumerate(JOBS.items()):
        core = statistics.median(costs[index] for costs in rust)
        bound = statistics.median(costs[index] for costs in python)
        more = statistics.median(
            (mine[index] - theirs[index]) / calls for mine, theirs in zip(python, rust, strict=True)
        )
        print(f"| {job} | {core:.1f} | {bound:.1f} | {more:.1f} |")


if __name__ == "__main__":
    main()
