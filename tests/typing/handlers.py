"""A registered handler keeps the arguments and the result of its function."""

from dataclasses import dataclass
from typing import Any, assert_type

from membox_queue import DrainReport, Handler, Item, Queue, Worker


@dataclass
class Doc:
    title: str


queue = Queue("memory.db")


@queue.handler
def send(to: str, body: str = "", *, urgent: bool = False) -> int:
    return len(to + body)


assert_type(send.enqueue("ann"), int)
assert_type(send.enqueue("ann", body="hello", urgent=True), int)
assert_type(send("ann", "hello"), int)
assert_type(send.options(delay=30, priority=5, key="k", group="g", connection=None).enqueue("ann", "hello"), int | Any)
assert_type(send.queue, Queue[Any])


@queue.handler(name="docs", lease=30)
def embed(item: Item[object], doc: Doc) -> Doc:
    assert_type(item.id, int)
    return doc


assert_type(embed.enqueue(Doc("t")), int)
assert_type(embed.options(delay=30).enqueue(doc=Doc("t")), int | Any)
assert_type(embed.queue.drain(), DrainReport)
assert_type(queue.drain(), DrainReport)
assert_type(queue.work(limit=1), DrainReport)
assert_type(queue.drain(send), DrainReport)
assert_type(queue.worker(concurrency=2), Worker)
queue.spawn_worker(send)
either: Handler[..., Any] = send

docs = Queue("memory.db", type=Doc)


@docs.handler
def index(doc: Doc) -> str:
    return doc.title


assert_type(index.enqueue(Doc("t")), int)
assert_type(index(Doc("t")), str)

send.enqueue()  # type: ignore[call-arg]
send.enqueue(1)  # type: ignore[arg-type]
send.enqueue("ann", cc="ben")  # type: ignore[call-arg]
send(1)  # type: ignore[arg-type]
send.options(delai=30)  # type: ignore[call-arg]
send.options(priority="high")  # type: ignore[arg-type]
send.options(delay=30).enqueue(1)  # type: ignore[arg-type]
embed.enqueue("text")  # type: ignore[arg-type]
embed.enqueue(1, Doc("t"))  # type: ignore[call-arg, arg-type]
queue.handler(name="x", leese=5)  # type: ignore[call-overload]
