"""The verbs from Python beside the same statements run by rusqlite alone, in alternating rounds.

python benches/verbs.py        (needs cargo: it builds and runs benches/verbs.rs)
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from membox_queue import Queue

ROUNDS = 5
DOCUMENT = "x" * 5_000
COUNTS = {"NORMAL": 1_500, "FULL": 300}


def rust_bench() -> str:
    """Build the Rust half and return the program's path."""
    command = ["cargo", "bench", "--bench", "verbs", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    programs = [message["executable"] for message in messages if message.get("executable")]
    return str(programs[-1])


def microseconds(count: int, started: float) -> float:
    return (time.perf_counter() - started) * 1e6 / count


def python_costs(folder: str, round_number: int) -> dict[tuple[str, str], float]:
    costs = {}
    for sync, count in COUNTS.items():
        with Queue(Path(folder) / f"{sync}{round_number}.db", durability=sync.lower()) as queue:
            started = time.perf_counter()
            for _ in range(count):
                queue.enqueue(DOCUMENT)
            costs[sync, "enqueue"] = microseconds(count, started)
            started = time.perf_counter()
            while (item := queue.claim()) is not None:
                queue.mark_done(item)
            costs[sync, "claim + mark_done"] = microseconds(count, started)
            for _ in range(count):
                queue.enqueue(DOCUMENT)
            started = time.perf_counter()
            queue.drain(lambda item: None)
            costs[sync, "drain, empty handler"] = microseconds(count, started)
    return costs


def main() -> None:
    program = rust_bench()
    raw: dict[tuple[str, str], list[float]] = {}
    ours: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(ROUNDS):
            ran = subprocess.run([program, "--json", "--rounds=1"], stdout=subprocess.PIPE, text=True, check=True)
            for row in json.loads(ran.stdout):
                raw.setdefault((row["sync"], row["job"]), []).append(row["raw_us"])
            for job, cost in python_costs(folder, round_number).items():
                ours.setdefault(job, []).append(cost)
    print("| synchronous | job, 5 KB document | rusqlite alone, µs | from Python, µs | ratio |")
    print("|---|---|---|---|---|")
    for (sync, job), costs in raw.items():
        ratio = statistics.median(mine / theirs for mine, theirs in zip(ours[sync, job], costs, strict=True))
        python = statistics.median(ours[sync, job])
        print(f"| {sync} | {job} | {statistics.median(costs):.0f} | {python:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
