"""What an idle consumer costs beside commits that have nothing to do with it, and how soon it hears of one that has."""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from membox_queue import Queue

SECONDS = 3.0
RATE = 900
WAKES = 30

CONSUMER = """
import asyncio, math, sys, threading, time
from membox_queue import AsyncQueue, Queue

path, how = sys.argv[1:]
queue = Queue(path)

def told(item):
    print("woken", time.time(), flush=True)

def claims():
    while True:
        item = queue.claim(wait=math.inf)
        told(item)
        queue.mark_done(item)

async def tasks():
    async with AsyncQueue(path) as queue:
        async for item in queue:
            async with item:
                told(item)

run = {"work": lambda: queue.work(told), "claim(wait=)": claims, "async for": lambda: asyncio.run(tasks())}[how]
threading.Thread(target=run, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print("used", time.process_time(), flush=True)
"""

WRITER = """
import sqlite3, sys, time

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA synchronous = NORMAL")
connection.execute("CREATE TABLE IF NOT EXISTS notes (text)")
print("ready", flush=True)
began, count = time.monotonic(), 0
while True:
    connection.execute("INSERT INTO notes VALUES ('x')")
    count += 1
    time.sleep(max(0.0, began + count / float(sys.argv[2]) - time.monotonic()))
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program that says when it is ready."""
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def used(consumer: subprocess.Popen[str]) -> float:
    """The CPU time of the consumer so far."""
    assert consumer.stdin
    assert consumer.stdout
    consumer.stdin.write("\n")
    consumer.stdin.flush()
    return float(consumer.stdout.readline().split()[1])


def cost(consumer: subprocess.Popen[str]) -> float:
    """Milliseconds of CPU a second."""
    before, began = used(consumer), time.monotonic()
    time.sleep(SECONDS)
    return 1000 * (used(consumer) - before) / (time.monotonic() - began)


def wake(consumer: subprocess.Popen[str], path: str) -> tuple[float, float]:
    """Milliseconds from another process's commit to the handler: median and longest."""
    assert consumer.stdout
    took = []
    with Queue(path) as queue:
        for number in range(WAKES):
            time.sleep(0.07 + number / 997 % 0.02)
            queue.enqueue(number)
            committed = time.time()
            took.append(1000 * (float(consumer.stdout.readline().split()[1]) - committed))
    return statistics.median(took), max(took)


def main() -> None:
    """Print the table."""
    print(
        "| consumer | CPU alone, ms/s | beside 900 commits/s, ms/s | wake alone, ms (longest) | beside, ms (longest) |"
    )
    print("|---|---|---|---|---|")
    for how in ("work", "claim(wait=)", "async for"):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "queue.db")
            Queue(path).close()
            consumer = start(CONSUMER, path, how)
            time.sleep(0.3)
            alone, woken = cost(consumer), wake(consumer, path)
            writer = start(WRITER, path, str(RATE))
            time.sleep(0.3)
            beside, woken_beside = cost(consumer), wake(consumer, path)
            with sqlite3.connect(path) as connection:
                before = connection.execute("SELECT count(*) FROM notes").fetchone()[0]
                time.sleep(1)
                rate = connection.execute("SELECT count(*) FROM notes").fetchone()[0] - before
            for process in (writer, consumer):
                process.kill()
                process.communicate()
            assert rate > 0.7 * RATE, rate
            print(
                f"| `{how}` | {alone:.1f} | {beside:.1f} | {woken[0]:.1f} ({woken[1]:.1f}) |"
                f" {woken_beside[0]:.1f} ({woken_beside[1]:.1f}) |"
            )


if __name__ == "__main__":
    main()
