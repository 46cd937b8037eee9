"""Workers that are started again and again while some items kill them, until one comes to the end of the queue."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import Queue, Retry

from proof.nursery import ended, fork

hoard: list[Any] = []


def exhaust() -> None:
    """Use up what memory there is, down to the small pieces, and keep it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (32 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for size in (1 << 20, 1 << 16, 1 << 12, 1 << 8):
        try:
            while True:
                hoard.append(bytearray(size))
        except MemoryError:
            continue
    raise MemoryError("nothing is left")


DEATHS = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGSEGV": lambda: ctypes.string_at(0),
    "SIGABRT": os.abort,
    "exit": lambda: os._exit(0),
    "memory": exhaust,
}


def work(path: Path, how: str, verb: str) -> None:
    def handler(item: Any) -> str:
        if item.content == "poison":
            DEATHS[how]()
        return "fine"

    # Those that survive as an exception go back at once, as losses do.
    queue = Queue(path, retry=Retry(max=3, base=0, jitter=0))
    if verb == "drain":
        queue.drain(handler)
    else:
        while item := queue.claim():
            with item:
                handler(item)
    Path(f"{path}.over").touch()


def main() -> None:
    path, how, verb = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    started = 0
    while not Path(f"{path}.over").exists():
        ended(fork(work, path, how, verb))
        started += 1
        assert started < 500, "it never ends"
    print(json.dumps({"deaths": started - 1}))


if __name__ == "__main__":
    main()
