"""What memory costs: draining many items, and one very large one. Each is measured in a process of its own.

python benches/memory.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 1 << 20


def resident() -> float:
    """What the process has in memory now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MIB


def peak() -> float:
    """The most it ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def drain(path: str) -> None:
    from membox_queue import Queue

    with Queue(path, durability="normal") as queue:
        for _ in range(11):
            queue.enqueue_many(["x" * 100] * 10_000)
        queue.drain(lambda item: None, limit=10_000)
        before = resident()
        report = queue.drain(lambda item: None)
        assert report.done == 100_000, report
        print(f"| draining 100,000 items | {resident() - before:+.1f} MiB |")


def large(path: str) -> None:
    from membox_queue import Queue

    size = 64 * MIB
    with Queue(path, durability="normal") as queue:
        document = "x" * size
        before = resident()
        queue.enqueue(document)
        print(f"| enqueueing a 64 MiB document, beside the document itself | {(peak() - before) / 64:.2f} × its size |")
        del document
        item = queue.claim()
        assert item is not None
        assert len(item.content) == size
        queue.mark_done(item)
        all_in_all = (peak() - before + 64) / 64
        print(f"| enqueueing, claiming, reading and finishing it, all in all | {all_in_all:.2f} × its size |")


def main() -> None:
    if len(sys.argv) == 3:
        {"drain": drain, "large": large}[sys.argv[1]](sys.argv[2])
        return
    print("| what | memory |")
    print("|---|---|")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        for job in ("drain", "large"):
            subprocess.run([sys.executable, __file__, job, str(Path(folder) / f"{job}.db")], check=True)


if __name__ == "__main__":
    main()
