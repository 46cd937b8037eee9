"""What items that wait for others cost: `python benches/flow.py [--items 100000] [--quick]`.

1. claim + done beside so many blocked items, over the same beside none; aim: at most 1.1×
2. the end of one item that so many wait for: the longest transaction that frees them; aim: at most 50 ms
3. so many children of one item: the end of the last ones over that of the first; aim: at most 2×
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from membox_queue import NewItem, Queue

DOCUMENT = "x" * 5000
AT_A_TIME = 5000


def timed(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def claim_and_finish(queue, count):
    """The median of claim + mark_done, in microseconds."""
    queue.enqueue_many([DOCUMENT] * count)
    times = [timed(lambda: queue.mark_done(queue.claim())) for _ in range(count)]
    return statistics.median(times) * 1e6


def block(queue, gate, count):
    """Let so many items wait for one."""
    for start in range(0, count, AT_A_TIME):
        queue.enqueue_many([NewItem("waits", after=[gate]) for _ in range(min(AT_A_TIME, count - start))])


def beside_blocked(path, count, rounds):
    """Claim + done beside none and beside many blocked items, in alternating rounds."""
    with Queue(path / "none.db", durability="normal") as none, Queue(path / "many.db", durability="normal") as many:
        gate = Queue(path / "many.db", "gates").enqueue("gate")
        block(many, gate, count)
        times = [(claim_and_finish(none, rounds), claim_and_finish(many, rounds)) for _ in range(5)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"claim + done: {first:.0f} µs beside none, {second:.0f} µs beside {count:,} blocked: {second / first:.2f}×")


def one_gate(path, count):
    """End an item that many wait for, and let claims free them."""
    with Queue(path / "gate.db", durability="normal") as queue, Queue(path / "gate.db", "gates") as gates:
        block(queue, gates.enqueue("gate"), count)
        item = gates.claim()
        times = [timed(lambda: gates.mark_done(item))]
        queue.pause()  # claims free, and claim nothing
        while queue.counts()["blocked"]:
            times.append(timed(queue.claim))
    print(
        f"a gate for {count:,}: {len(times)} calls, median {statistics.median(times) * 1e3:.1f} ms, "
        f"longest {max(times) * 1e3:.1f} ms, {sum(times):.2f} s in all (one call may be several transactions)"
    )


def fan_in(path, count):
    """End the children of one item one by one."""
    with Queue(path / "fan_in.db", durability="normal") as queue:
        ids = []
        for start in range(0, count, AT_A_TIME):
            ids += queue.enqueue_many(["child"] * min(AT_A_TIME, count - start))
        queue.enqueue("merge", after=ids)
        times = [timed(lambda item=item: queue.mark_done(item)) for item in claimed(queue, count)]
        assert queue.claim().content == "merge"
    part = min(300, count // 3)
    first, last = statistics.median(times[:part]) * 1e6, statistics.median(times[-part:]) * 1e6
    print(f"fan-in of {count:,}: {first:.0f} µs for the first ends, {last:.0f} µs for the last: {last / first:.2f}×")


def claimed(queue, count):
    for _ in range(count):
        yield queue.claim()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="2,000 items")
    given = parser.parse_args()
    count = 2000 if given.quick else given.items
    with tempfile.TemporaryDirectory() as folder:
        beside_blocked(Path(folder), count, 300)
        one_gate(Path(folder), count)
        fan_in(Path(folder), count)


if __name__ == "__main__":
    main()
