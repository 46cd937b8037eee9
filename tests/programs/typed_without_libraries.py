"""Use typed queues where no library of types can be imported: ADDRESS."""

import sys
from dataclasses import dataclass
from typing import TypedDict


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pydantic", "msgspec", "typing_extensions"):
            raise ImportError(name)


sys.meta_path.insert(0, Blocked())
from membox_queue import Queue  # noqa: E402 - after the libraries are out of reach

with Queue(sys.argv[1]) as queue:
    queue.enqueue("x")
    assert queue.claim().content == "x"
on_demand = {"membox_queue.content.shape", "membox_queue.content.codecs", "membox_queue.loops.handler"}
assert not on_demand & set(sys.modules)


@dataclass
class Page:
    number: int


class Letter(TypedDict):
    to: str


for kind, value in ((Page, Page(1)), (Letter, {"to": "you"})):
    with Queue(sys.argv[1], type=kind) as queue:
        queue.enqueue(value)
        assert queue.claim().content == value
