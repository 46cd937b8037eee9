"""What a hundred idle consumers in ten processes cost: while nothing happens, and for each item that is enqueued."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from membox_queue import Queue

PROCESSES = 10
EACH = 10
SECONDS = 5.0
COMMITS = 200
PAUSE = 0.02

CONSUMER = """
import asyncio, math, sys, threading, time
from membox_queue import Queue, Worker

path, how, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
queue = Queue(path)

def claims():
    while True:
        with queue.claim(wait=math.inf):
            pass

if how == "claim(wait=)":
    for _ in range(count):
        threading.Thread(target=claims, daemon=True).start()
elif how == "Worker":
    for _ in range(count):
        Worker(path, {"ingest": id}).start()
else:
    threading.Thread(target=queue.work, args=(id,), kwargs={"concurrency": count}, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(time.process_time(), flush=True)
"""


def start(path: str, how: str) -> subprocess.Popen[str]:
    """Start a process with ten consumers."""
    command = [sys.executable, "-c", CONSUMER, path, how, str(EACH)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def used(consumers: list[subprocess.Popen[str]]) -> float:
    """The CPU time of all consumers so far, in milliseconds."""
    total = 0.0
    for consumer in consumers:
        assert consumer.stdin
        assert consumer.stdout
        consumer.stdin.write("\n")
        consumer.stdin.flush()
        total += 1000 * float(consumer.stdout.readline())
    return total


def main() -> None:
    """Print the table."""
    print(f"| {PROCESSES} processes with {EACH} each | CPU while idle, ms/s | CPU for each item, ms | 200 items, s |")
    print("|---|---|---|---|")
    for how in ("claim(wait=)", "Worker", "work(concurrency=10)"):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "queue.db")
            with Queue(path) as queue:
                consumers = [start(path, how) for _ in range(PROCESSES)]
                time.sleep(1)
                before, began = used(consumers), time.monotonic()
                time.sleep(SECONDS)
                idle = (used(consumers) - before) / (time.monotonic() - began)
                before, began = used(consumers), time.monotonic()
                for number in range(COMMITS):
                    queue.enqueue(number)
                    time.sleep(PAUSE)
                while queue.pending():
                    time.sleep(0.01)
                took = time.monotonic() - began
                cost = (used(consumers) - before - idle * took) / COMMITS
                for consumer in consumers:
                    consumer.kill()
                    consumer.communicate()
                print(f"| `{how}` | {idle:.1f} | {cost:.2f} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    main()
