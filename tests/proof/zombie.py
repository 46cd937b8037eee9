"""A worker that is stopped past its lease, and then does everything a worker can do with what it held.

A line says how to get how many items and at what time; answered, a second one says at what time to go on with them.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from membox_queue import GiveUp, Queue, RetryLater, StaleClaimError, _native

if TYPE_CHECKING:
    from collections.abc import Callable

# It says that each item of its drain was lost, as it should.
logging.disable()
queue = Queue(sys.argv[1], lease=60)

VERBS: dict[str, Callable[[Any], object]] = {
    "mark_done": lambda item: queue.mark_done(item, result="late"),
    "mark_done_many": lambda item: queue.mark_done_many([item]),
    "mark_failed": lambda item: queue.mark_failed(item, "late"),
    "mark_failed, to be retried": lambda item: queue.mark_failed(item, "late", retry_in=0),
    "mark_failed, for good": lambda item: queue.mark_failed(item, "late", give_up=True),
    "extend": lambda item: queue.extend(item, 600),
    "release": lambda item: queue.release(item),
    "set_progress": lambda item: item.set_progress(1.0, "late"),
}
ENDINGS = (None, ValueError("late"), RetryLater(0), GiveUp("late"), KeyboardInterrupt())


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


def hear() -> Any:
    return json.loads(sys.stdin.readline())


def leave_the_block(item: Any, error: BaseException | None) -> bool:
    """Leave a `with` block; whether it took effect. Left normally, the loss is told."""
    try:
        item.__exit__(type(error) if error else None, error, None)
    except StaleClaimError:
        return False
    return error is None


def by_hand(count: int) -> None:
    items = queue.claim_many(count)
    blocks = items[: len(items) // 3]
    for item in blocks:
        item.__enter__()
    say(len(items))
    _native.set_clock(hear())
    calls, accepted = 0, Counter[str]()
    for number, item in enumerate(blocks):
        calls += 1
        accepted["with"] += leave_the_block(item, ENDINGS[number % len(ENDINGS)])
    for item in items:
        for verb, call in VERBS.items():
            calls += 1
            accepted[verb] += bool(call(item))
        accepted["not known to be lost"] += not item.lost
    say({"calls": calls, "accepted": +accepted})


def by_drain(count: int) -> None:
    began, woken = threading.Semaphore(0), threading.Event()
    endings = iter(ENDINGS[:-1] * count)

    def handle(item: Any) -> None:
        ending = next(endings)
        began.release()
        woken.wait()
        if ending:
            raise ending

    def wake() -> None:
        for _ in range(count):
            began.acquire()
        say(count)
        _native.set_clock(hear())
        woken.set()

    thread = threading.Thread(target=wake)
    thread.start()
    report = queue.drain(handle, concurrency=count, exclusive=False, limit=count)
    thread.join()
    accepted = {name: getattr(report, name) for name in ("done", "failed", "postponed", "released")}
    say({"calls": report.lost, "accepted": {name: number for name, number in accepted.items() if number}})


while line := sys.stdin.readline():
    how, count, ms = json.loads(line)
    _native.set_clock(ms)
    by_hand(count) if how == "by hand" else by_drain(count)
