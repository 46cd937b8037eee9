"""A queue without a type needs no annotations, and says nothing about its content."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

from membox_queue import BY_CONTENT, DrainReport, Item, NewItem, Queue, Rate, Retry, Schedule, Worker, remove
from membox_queue.alembic import include_name

queue = Queue("memory.db", "emails", lease=30, retry=Retry(max=5), rate=Rate(5), durability="normal")
assert_type(queue, Queue[Any])
assert_type(queue.path, Path | None)

assert_type(queue.enqueue("text", priority=5, key=BY_CONTENT), int)
assert_type(queue.enqueue({"any": ["json"]}), int)
assert_type(queue.enqueue("text", key="k", on_duplicate="skip"), int | None)
assert_type(queue.enqueue_many(["a", b"b", NewItem({"c": 1}, delay=5)]), list[int | Any])
assert_type(queue.enqueue_file("notes.md", project="p"), int)
assert_type(queue.schedule("nightly", {"job": "digest"}, cron="0 3 * * *"), Schedule)

item = queue.claim(wait=5)
assert_type(item, Item[Any] | None)
if item:
    with item as claimed:
        assert_type(claimed, Item[Any])
        assert_type(claimed.content, Any)
        assert_type(claimed.id, int)
        assert_type(claimed.lease_until, datetime | None)
    assert_type(queue.mark_done(item, result={"n": 1}), bool)
    assert_type(queue.mark_done(item, connection=object()), bool)
    with item.transaction(object()) as the_same:
        assert_type(the_same, Item[Any])
    assert_type(queue.mark_failed(item, ValueError("no"), retry_in=5), bool)

items = queue.items("failed", limit=5)
assert_type(items, list[Item[Any]])
assert_type(queue.wait(1, timeout=5), Item[Any] | Any)
for each in queue.claim_many(5):
    assert_type(each, Item[Any])
for endless in queue:
    assert_type(endless, Item[Any])
    break


def handler(item: Item) -> dict[str, int]:
    return {"words": len(str(item.content).split())}


def of_group(items: list[Item]) -> None: ...


assert_type(queue.drain(handler, concurrency=4), DrainReport)
assert_type(queue.drain(of_group, batch="group"), DrainReport)
assert_type(queue.work(lambda item: None, limit=1), DrainReport)
assert_type(queue.drain(handler, grace=timedelta(seconds=5)), DrainReport)
assert_type(queue.stats()["oldest_pending_age"], float | None)
assert_type(queue.stats()["next_due_at"], datetime | None)
assert_type(queue.stats()["delayed"], int)
queue.drain(handler, progress=lambda event: None if event.kind == "cancelled" else print(event.item.id))
assert_type(queue.items(items[0].status), list[Item[Any]])
assert_type(queue.claim_group(group="coder"), list[Item[Any]])
assert_type(queue.retry(1), bool)
assert_type(queue.retry(key="k", delay=5), bool)
assert_type(queue.retry([1, 2]), int)
assert_type(queue.retry(status="failed"), int)
assert_type(queue.replay(1), int | None)
assert_type(queue.replay(status="done"), int)
assert_type(queue.cancel(key="k"), bool)
assert_type(queue.cancel(1, connection=object()), bool)
assert_type(queue.retry([1, 2], connection=object()), int)
queue.configure(rate=Rate(5), keep_for=timedelta(days=7), lease=None)
Worker("memory.db", {"emails": handler, "others": print}, concurrency=4, linger=4, options={"emails": {"lease": 5}})

assert_type(queue.coverage_note(noun="order"), str | None)
assert_type(remove("memory.db", dry_run=True)["objects"], list[str])
assert_type(include_name("orders", "table", {"schema_name": None}), bool)

with Queue("memory.db") as opened:
    assert_type(opened, Queue[Any])


def takes_any_queue(queue: Queue) -> Callable[[Any], int]:
    return queue.enqueue


takes_any_queue(Queue("memory.db", type=int))

Queue("memory.db", leese=30)  # type: ignore[call-overload]
Queue(5)  # type: ignore[call-overload]
queue.enqueue("text", priority="high")  # type: ignore[call-overload]
queue.items("lost")  # type: ignore[arg-type]
queue.drain(handler, batch="all")  # type: ignore[call-overload]
queue.retry(1, status="failed")  # type: ignore[call-overload]
queue.mark_done(1)  # type: ignore[arg-type]
queue.configure(leese=30)  # type: ignore[call-arg]
queue.configure(durability="normal")  # type: ignore[call-arg]
queue.enqueue_file("notes.md", prio=5)  # type: ignore[call-arg]
queue.stats()["oldest_age"]  # type: ignore[typeddict-item]
Worker("memory.db", {"emails": handler}, concurency=4)  # type: ignore[call-arg]
Worker("memory.db", {"emails": handler}, exclusive=True)  # type: ignore[call-arg]
print(items[0].status == "completed")  # type: ignore[comparison-overlap]
print(queue.history(1)[0].ending == "completed")  # type: ignore[comparison-overlap]
print(item.content)  # type: ignore[union-attr]
claimed.content = 1  # type: ignore[misc]
