"""A queue with a type: what is enqueued, claimed and handled is of that type."""

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec
import pydantic
from membox_queue import Item, NewItem, Queue


@dataclass
class Doc:
    title: str


class Letter(TypedDict):
    to: str


class Model(pydantic.BaseModel):
    name: str


class Struct(msgspec.Struct):
    name: str


queue = Queue("memory.db", type=Doc)
assert_type(queue, Queue[Doc])
assert_type(Queue[Doc]("memory.db"), Queue[Doc])
assert_type(Queue[Doc]("memory.db", "docs", type=Doc, lease=5), Queue[Doc])
assert_type(Queue("memory.db", type=Letter), Queue[Letter])
assert_type(Queue("memory.db", type=Model), Queue[Model])
assert_type(Queue("memory.db", type=Struct), Queue[Struct])
assert_type(Queue("memory.db", type=str), Queue[str])
assert_type(Queue("memory.db", type=list[Doc]), Queue[list[Doc]])
assert_type(Queue[Doc | None]("memory.db", type=Doc | None), Queue[Doc | None])
assert_type(Queue[Doc | None]("memory.db"), Queue[Doc | None])

assert_type(queue.enqueue(Doc("t")), int)
assert_type(queue.enqueue_many([Doc("t"), NewItem(Doc("t"), priority=1)]), list[int | Any])
assert_type(NewItem(Doc("t")), NewItem[Doc])
assert_type(NewItem("text", queue="texts"), NewItem[Any])
assert_type(queue.enqueue_many([Doc("t"), NewItem("text", queue="texts")]), list[int | Any])

queue.drain(lambda item: item.content.title)
queue.drain(lambda items: [item.content.title for item in items], batch="group")
item = queue.claim()
assert_type(item, Item[Doc] | None)
assert item is not None
assert_type(item.content, Doc)
assert_type(item.content.title, str)
with item as same:
    assert_type(same, Item[Doc])
assert_type(queue.claim_many(2), list[Item[Doc]])
assert_type(queue.claim_group(), list[Item[Doc]])
assert_type(queue.get(1), Item[Doc] | None)
assert_type(queue.items(), list[Item[Doc]])
assert_type(queue.failures(), list[Item[Doc]])
assert_type(queue.wait(1), Item[Doc] | Any)
assert_type(queue.type, Any)


def embed(item: Item[Doc]) -> int:
    return len(item.content.title)


def of_group(items: list[Item[Doc]]) -> int:
    return len(items)


def of_letters(item: Item[Letter]) -> None: ...


def of_anything(item: Item[object]) -> None: ...


queue.drain(embed)
queue.work(embed, concurrency=2)
queue.drain(of_group, batch="group")
queue.drain(of_anything)
queue.mark_done(item)

with queue as entered:
    assert_type(entered, Queue[Doc])

queue.enqueue("text")  # type: ignore[call-overload]
queue.enqueue({"title": "t"})  # type: ignore[call-overload]
queue.enqueue_many(["text"])  # type: ignore[list-item]
queue.enqueue_many([NewItem("text")])  # type: ignore[arg-type]
queue.drain(of_letters)  # type: ignore[arg-type]
queue.drain(of_group)  # type: ignore[arg-type]
queue.schedule("s", "text", every=5)  # type: ignore[arg-type]
Queue[Doc]("memory.db", type=Letter)  # type: ignore[arg-type]
print(item.content.length)  # type: ignore[attr-defined]
