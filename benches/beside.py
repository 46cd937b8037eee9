"""What one claim + mark_done costs beside rows that have nothing to do with it.

python benches/beside.py
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from membox_queue import Queue

READY = 1_000
ROUNDS = 5
FUTURE = 4_000_000_000_000

POPULATIONS = {
    "nothing": [],
    "1,000,000 done": [("'done'", "NULL", "NULL", "'ingest'", 1_000_000)],
    "100,000 delayed": [("'pending'", str(FUTURE), "NULL", "'ingest'", 100_000)],
    "100,000 waiting in one group": [("'pending'", "NULL", "'busy'", "'ingest'", 100_000)],
    "100,000 failed": [("'failed'", "NULL", "NULL", "'ingest'", 100_000)],
    "50 other queues of 2,000": [("'pending'", "NULL", "NULL", "'q' || (n % 50)", 100_000)],
    "5,000 in flight": [("'processing'", "NULL", "NULL", "'ingest'", 5_000)],
}


def populate(path: Path, rows: list[tuple[str, str, str, str, int]]) -> None:
    connection = sqlite3.connect(path)
    for status, run_at, group, queue, count in rows:
        connection.execute(
            f"WITH RECURSIVE c(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM c WHERE n < {count}) "
            "INSERT INTO ingest_queue (content, status, run_at, group_key, queue, attempt, claim_token, lease_until, "
            f"lease_ms, finished_at) SELECT 'x', {status}, {run_at}, {group}, {queue}, 1, "
            f"CASE {status} WHEN 'processing' THEN 7 END, CASE {status} WHEN 'processing' THEN {FUTURE} END, "
            f"CASE {status} WHEN 'processing' THEN {FUTURE} END, '2026-01-01' FROM c"
        )
    connection.commit()
    connection.close()


def cost(path: Path) -> tuple[float, float]:
    """Microseconds per claim + mark_done of ready items, and per counts()."""
    with Queue(path, durability="normal") as queue:
        if queue.counts()["pending"] >= 100_000 and queue.group_counts():
            queue.claim(group="busy", lease=86_400)
        queue.enqueue_many(["ready"] * READY)
        started = time.perf_counter()
        for _ in range(READY):
            item = queue.claim()
            assert item is not None
            assert item.content == "ready"
            queue.mark_done(item)
        claims = (time.perf_counter() - started) / READY * 1e6
        started = time.perf_counter()
        for _ in range(100):
            queue.counts()
        return claims, (time.perf_counter() - started) / 100 * 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, rows in POPULATIONS.items():
            paths[name] = Path(folder) / f"{len(paths)}.db"
            Queue(paths[name]).close()
            populate(paths[name], rows)
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
        for _ in range(ROUNDS):
            for name, path in paths.items():
                costs[name].append(cost(path))
    print("| beside | claim + mark_done, µs | ratio to nothing | counts(), µs |")
    print("|---|---|---|---|")
    alone = [claims for claims, _ in costs["nothing"]]
    for name, measured in costs.items():
        claims = statistics.median(claims for claims, _ in measured)
        ratio = statistics.median(mine / base for (mine, _), base in zip(measured, alone, strict=True))
        counts = statistics.median(counts for _, counts in measured)
        print(f"| {name} | {claims:.0f} | {ratio:.2f} | {counts:.0f} |")


if __name__ == "__main__":
    main()
