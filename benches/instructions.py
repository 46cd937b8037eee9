"""Instructions per call, counted by callgrind, of this build and of others.

    python benches/instructions.py [--beside NAME=PYTHON …] [--only NAME …] [--check]

Times are noisy on a shared machine; counted instructions are not. Each job runs twice, with 100 and 600 calls, and the
difference is divided by 500, so that starting up does not count. It needs valgrind. With `--check` it fails if a verb
needs more than its budget in `budget.json`, with 5 % slack; `--write` makes what was counted the new budget.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = {
    "enqueue": "for _ in range(count): queue.enqueue(content)",
    "enqueue_many of 20": "for _ in range(count // 20): queue.enqueue_many([content] * 20)",
    "claim + mark_done": "queue.enqueue_many([content] * count)\nfor _ in range(count): queue.mark_done(queue.claim())",
    "drain": "queue.enqueue_many([content] * count)\nqueue.drain(lambda item: None)",
    "extend": "queue.enqueue(content)\nitem = queue.claim()\nfor _ in range(count): queue.extend(item, 60)",
    "empty claim": "for _ in range(count): queue.claim()",
    "get": "queue.enqueue(content)\nfor _ in range(count): queue.get(1)",
    "counts": "for _ in range(count): queue.counts()",
    "stats": "queue.enqueue(content)\nfor _ in range(count): queue.stats()",
}

BEFORE = """
import os, sys
from membox_queue import Queue
count, content = int(sys.argv[2]), "x" * 100
queue = Queue(sys.argv[1], durability="normal")
queue.enqueue("first")
queue.claim()
"""


def instructions(python, job, count):
    with tempfile.TemporaryDirectory() as folder:
        program = f"{BEFORE}{job}\nos._exit(0)"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", python, "-c", program]
        command += [str(Path(folder) / "queue.db"), str(count)]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": "0"}
        )
    return int(re.search(r"Collected : (\d+)", ended.stderr)[1])


BUDGET = Path(__file__).with_name("budget.json")
SLACK = 1.05


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", nargs="*", default=[], metavar="NAME=PYTHON", help="other builds, shown first")
    parser.add_argument("--only", nargs="*", choices=JOBS, default=None)
    parser.add_argument("--check", action="store_true", help="fail above the budget")
    parser.add_argument("--write", action="store_true", help="make what was counted the budget")
    options = parser.parse_args()
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if options.check:
        return check(budget)
    names = options.only or list(JOBS)
    builds = dict(given.split("=", 1) for given in options.beside) | {"this build": sys.executable}
    print("| 100 bytes, NORMAL | " + " | ".join(builds) + " | change |")
    print("|---" * (len(builds) + 2) + "|")
    counts = {}
    for name in names:
        counted = [per_call(python, name) for python in builds.values()]
        shown = " | ".join(f"{each:,.0f}" for each in counted)
        print(f"| {name} | {shown} | {counted[-1] / counted[0] - 1:+.1%} |", flush=True)
        counts[name] = round(counted[-1])
    if options.write:
        BUDGET.write_text(json.dumps(budget | counts, indent=1) + "\n")
    return 0


def per_call(python, name):
    return (instructions(python, JOBS[name], 600) - instructions(python, JOBS[name], 100)) / 500


def check(budget):
    print("| 100 bytes, NORMAL | budget | counted | change |\n|---|---|---|---|")
    too_much = []
    for name, allowed in budget.items():
        counted = per_call(sys.executable, name)
        print(f"| {name} | {allowed:,} | {counted:,.0f} | {counted / allowed - 1:+.1%} |", flush=True)
        if counted > allowed * SLACK:
            too_much.append(name)
    if too_much:
        print(f"more than {SLACK - 1:.0%} above the budget: {', '.join(too_much)}", file=sys.stderr)
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
