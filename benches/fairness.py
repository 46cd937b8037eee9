"""How long an enqueue takes while other processes drain a backlog, and what that costs the drains.

    python benches/fairness.py [--rounds 5] [--seconds 4] [--beside /path/to/another/python]

Each round fills a new file with documents of 5 KB, lets one and then four processes work through it with an empty
handler, and enqueues 200 a second meanwhile. With `--beside` another build of the package takes every second round, so
that both are measured in one run. Medians of the rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BACKLOG = 60_000
DOCUMENT = "x" * 5_000
RATE = 200

DRAIN = """
import sys
from membox_queue import Queue
queue = Queue(sys.argv[1])
print("ready", flush=True)
input()
queue.work(lambda item: None)
"""

FILL = """
import sys
from membox_queue import Queue
with Queue(sys.argv[1], durability="normal") as queue:
    queue.enqueue_many([sys.argv[2]] * int(sys.argv[3]))
"""

ENQUEUE = """
import json, sys, time
from membox_queue import Queue
queue, seconds, rate, document = Queue(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
queue.enqueue(document)
done = queue.counts()["done"]
times, started = [], time.perf_counter()
while (now := time.perf_counter()) < started + seconds:
    queue.enqueue(document)
    times.append(time.perf_counter() - now)
    time.sleep(max(0, started + len(times) / rate - time.perf_counter()))
took = time.perf_counter() - started
counts = queue.counts()
assert counts["pending"] > 0, "the backlog was too short"
print(json.dumps({"times": times, "drained": (counts["done"] - done) / took}))
"""


def run(python, program, *arguments):
    out = subprocess.run([python, "-c", program, *map(str, arguments)], check=True, capture_output=True, text=True)
    return out.stdout


def measure(python, processes, seconds):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        run(python, FILL, path, DOCUMENT, BACKLOG)
        command = [python, "-c", DRAIN, str(path)]
        drains = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        try:
            for drain in drains:
                drain.stdout.readline()
            for drain in drains:
                drain.stdin.write("go\n")
                drain.stdin.flush()
            return json.loads(run(python, ENQUEUE, path, seconds, RATE, DOCUMENT))
        finally:
            for drain in drains:
                drain.terminate()
            for drain in drains:
                drain.wait(30)
                drain.stdin.close()
                drain.stdout.close()


def quantile(times, part):
    times = sorted(times)
    return 1000 * times[min(len(times) - 1, int(part * len(times)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--beside", help="the Python of an environment with another build")
    options = parser.parse_args()
    builds = {"this build": sys.executable} | ({"other build": options.beside} if options.beside else {})
    rounds = {(name, count): [] for count in options.processes for name in builds}
    for _ in range(options.rounds):
        for name, count in rounds:
            rounds[name, count].append(measure(builds[name], count, options.seconds))
    print("| drains | build | enqueues | p50, ms | p99 | p99.9 | max | drained a second |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, count), results in rounds.items():
        shown = [statistics.median(len(result["times"]) for result in results)]
        for part in (0.5, 0.99, 0.999, 1.0):
            shown.append(statistics.median(quantile(result["times"], part) for result in results))
        shown.append(statistics.median(result["drained"] for result in results))
        print(f"| {count} | {name} | " + " | ".join(f"{value:,.1f}" for value in shown) + " |")


if __name__ == "__main__":
    main()
