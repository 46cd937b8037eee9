"""Loops and waits that are sent SIGINT or SIGTERM at random moments, and how they leave."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from membox_queue import Queue

from proof.nursery import ended

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 3
LATEST = 0.03
"""Seconds between the begin of a call and the signal, at most."""


def leave(*_: object) -> None:
    raise SystemExit


def handler_of(queue: Queue, dice: random.Random) -> Callable[[Any], None]:
    """A handler that takes a moment and leaves as much work as it found."""

    def handler(item: Any) -> None:
        queue.enqueue("and so on")
        time.sleep(dice.uniform(0, 0.004))

    return handler


def by_hand(queue: Queue, handler: Callable[[Any], None]) -> None:
    while item := queue.claim(wait=300):
        with item:
            handler(item)


VERBS: dict[str, Callable[[Queue, Callable[[Any], None]], object]] = {
    "work": lambda queue, handler: queue.work(handler),
    "work with threads": lambda queue, handler: queue.work(handler, concurrency=3),
    "drain": lambda queue, handler: queue.drain(handler, exclusive=False),
    "drain with threads": lambda queue, handler: queue.drain(handler, concurrency=3, exclusive=False),
    "idle work": lambda queue, handler: queue.work(handler),
    "idle wait": lambda queue, handler: queue.claim(wait=300),
    "by hand": by_hand,
}


def name_of(verb: str) -> str:
    """The queue that a verb uses: an empty one to wait in, and one of its own where items may be lost."""
    return verb.partition(" ")[0] if verb.startswith("idle") else "by hand" if verb == "by hand" else "loops"


class Child:
    """A process that is inside a call, or about to be."""

    def __init__(self, path: Path, verb: str, seed: str) -> None:
        self.verb = verb
        self.ready, say = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            raise Forked(lambda: self.live(path, seed, say))
        os.close(say)

    def live(self, path: Path, seed: str, say: int) -> None:
        queue = Queue(path, name_of(self.verb))
        handler = handler_of(queue, random.Random(seed))
        try:
            os.write(say, b".")
            VERBS[self.verb](queue, handler)
        except (KeyboardInterrupt, SystemExit):
            pass

    def signal(self, dice: random.Random) -> float:
        """Send it one signal; when that was."""
        os.read(self.ready, 1)
        os.close(self.ready)
        time.sleep(dice.uniform(0, LATEST))
        sent = time.monotonic()
        os.kill(self.pid, dice.choice((signal.SIGINT, signal.SIGTERM)))
        return sent


class Forked(BaseException):
    """Brings a child out of the driver's loop, so that it leaves as any interpreter does."""

    def __init__(self, live: Callable[[], None]) -> None:
        self.live = live


def drive(path: Path, count: int, seed: int) -> dict[str, Any]:
    dice, took, codes = random.Random(seed), [], Counter[str]()
    while len(took) < count:
        children = [Child(path, dice.choice(list(VERBS)), f"{seed}:{len(took)}:{number}") for number in range(AT_ONCE)]
        for child in children:
            sent = child.signal(dice)
            code = ended(child.pid)
            took.append(time.monotonic() - sent)
            if code:
                codes[f"{child.verb}: {code}"] += 1
    took.sort()
    said = {"p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100], "most": took[-1]}
    return {"signals": len(took), "codes": codes, **said}


def main() -> None:
    signal.signal(signal.SIGTERM, leave)
    # A shell starts what runs in its background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(json.dumps(drive(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
    except Forked as forked:
        child = forked
    else:
        return
    child.live()


if __name__ == "__main__":
    main()
