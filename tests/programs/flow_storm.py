"""Call verbs at random on items that wait for each other: PATH SEED COUNT."""

import contextlib
import random
import sys

from membox_queue import NeededItemError, NewItem, Queue

path, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dice = random.Random(seed)
queues = [Queue(path, name, durability="normal", max_retries=2) for name in ("a", "b")]
held = []


def known():
    """A few items of both queues."""
    return [item.id for queue in queues for item in queue.items(limit=40, newest_first=True)]


def enqueue(queue):
    ids = known()
    after = dice.sample(ids, min(len(ids), dice.randrange(4)))
    if dice.random() < 0.3:
        after.append(NewItem("child", queue=dice.choice("ab"), group=dice.choice([None, "g"])))
    options = {"group": dice.choice([None, None, "g", "h"]), "if_failed": dice.choice(["cancel", "run"])}
    if dice.random() < 0.1:
        options["expires"] = 0.01
    with contextlib.suppress(ValueError):  # the other process has removed one of them
        queue.enqueue("item", after=after, **options)


def claim(queue):
    if (item := queue.claim()) is not None:
        held.append((queue, item))


def end(queue):
    if not held:
        return
    queue, item = held.pop(dice.randrange(len(held)))
    verb = dice.choice(["done", "done", "fail", "fail", "release"])
    if verb == "done":
        queue.mark_done(item, {"id": item.id})
    elif verb == "fail":
        queue.mark_failed(item, "boom")
    else:
        queue.release(item)


def some(verb):
    def change(queue):
        if ids := known():
            with contextlib.suppress(NeededItemError):
                getattr(queue, verb)(dice.choice(ids), **{"tree": True} if dice.random() < 0.2 else {})

    return change


def answer(queue):
    if ids := known():
        queue.answer(dice.choice(ids), **dice.choice([{"result": 1}, {"error": "no"}]))


def remove(queue):
    dice.choice([lambda: queue.prune(0, status="failed"), lambda: queue.purge("cancelled"), queue.retry_failed])()


verbs = [enqueue] * 6 + [claim] * 5 + [end] * 5 + [some("cancel"), some("retry"), some("retry"), some("delete")]
verbs += [answer, answer, remove]
for _ in range(count):
    dice.choice(verbs)(dice.choice(queues))
while held:
    queue, item = held.pop()
    queue.release(item)
