"""type=: content is checked when it is enqueued and when it is claimed, and comes back as what it was."""

# ruff: noqa: UP007, UP045 - both forms are written

from __future__ import annotations

import asyncio
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, NewType, Optional, Required, TypedDict, Union
from uuid import UUID

import pytest
from membox_queue import AsyncQueue, Item, NewItem, Queue
from programs import PROGRAMS
from typed_documents import NOW, Color, Doc, Letter, Page, Positive


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


class Many(Flag):
    ONE = 1


class Unwritable(Enum):
    BOTH = (1, 2)


@dataclass
class Circle:
    radius: float


@dataclass
class Square:
    side: float


@dataclass
class SameAsSquare:
    side: float


class Loose(TypedDict, total=False):
    subject: Required[str]
    body: str


UserId = NewType("UserId", int)
DOC = Doc(
    "t", NOW, Color.BLUE, "mail", [Page(1, "x"), Page(2)], {"a": 1.5}, Doc("p"), frozenset({"b", "a"}), is_read=True
)
FITTING = [
    (str, "text"),
    (bytes, b"\x00bytes"),
    (int, 2**63),
    (float, 1.5),
    (bool, True),
    (type(None), None),
    (dict, {"a": [1, None]}),
    (list, [1, "a"]),
    (list[int], [1, 2]),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (tuple, (1, "a")),
    (set[str], {"a", "b"}),
    (dict[str, list[float]], {"a": [1.0]}),
    (dict[Color, int], {Color.RED: 1}),
    (dict[date, int], {date(2026, 1, 2): 1}),
    (Mapping[str, int], {"a": 1}),
    (Sequence[int], [1]),
    (datetime, NOW),
    (datetime, NOW.replace(tzinfo=None)),
    (date, date(2026, 1, 2)),
    (time, time(1, 2, 3)),
    (timedelta, timedelta(days=-3, microseconds=7)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("1.10")),
    (Path, Path("/a/b")),
    (PurePosixPath, PurePosixPath("a")),
    (list[bytes], [b"\xff"]),
    (Color, Color.BLUE),
    (Level, Level.HIGH),
    (Word, Word.YES),
    (Literal["a", 1, None], 1),
    (Literal[Color.RED], Color.RED),
    (Optional[int], None),
    (int | str, "a"),
    (float | int, 1),
    (Union[list[int], dict[str, int], None], {"a": 1}),
    (Circle | Square, Square(2.0)),
    (Annotated[int, "cm"], 1),
    (UserId, UserId(7)),
    (Any, {"any": "json"}),
    (object, [1]),
    (Doc, DOC),
    (list[Doc], [DOC]),
    (Positive, Positive(1)),
    (Letter, {"to": "you", "at": NOW}),
    (Loose, {"subject": "s"}),
]


@pytest.mark.parametrize(("kind", "value"), FITTING, ids=[str(kind) for kind, _ in FITTING])
def test_content_comes_back_equal_and_of_the_same_type(open_queue, kind, value):
    with open_queue(type=kind) as queue:
        read = queue.get(queue.enqueue(value)).content
        claimed = queue.claim().content
    assert (read, claimed) == (value, value)
    assert type(read) is type(claimed) is type(value)


MISFITS = [
    (Doc, {"title": "t"}, TypeError, "content is a dict, not a Doc"),
    (Doc, Doc("t", pages=[Page("1")]), TypeError, "content.pages[0].number is a str, not an int"),
    (Doc, Doc("t", kind="x"), ValueError, "content.kind is 'x', not one of 'note', 'mail', 3"),
    (Doc, Doc("t", parent=Doc("p", at=3)), TypeError, "content.parent.at is an int, not a datetime | None"),
    (Doc, Doc("t", scores={"a": "b"}), TypeError, "content.scores['a'] is a str, not a float"),
    (Doc, Doc("t", scores={1: 1.0}), TypeError, "content.scores[1] is an int, not a str"),
    (Doc, Doc("t", is_read=1), TypeError, "content.is_read is an int, not a bool"),
    (Doc, Doc("t", color="red"), TypeError, "content.color is a str, not a Color"),
    (float, float("nan"), ValueError, "content is NaN"),
    (float, 10**400, ValueError, "content is too large for a float"),
    (int, True, TypeError, "content is a bool, not an int"),
    (str, Word.YES, TypeError, "content is a Word, not a str"),
    (date, NOW, TypeError, "content is a datetime, not a date"),
    (tuple[int, str], (1,), ValueError, "content has 1 elements, not 2"),
    (Any, object(), TypeError, "JSON cannot carry"),
    (Letter, {"to": "you", "ot": 1}, ValueError, "content['ot'] is not a key of Letter"),
    (Letter, {"at": NOW}, ValueError, "content['to'] is missing"),
    (Loose, {"body": "b"}, ValueError, "content['subject'] is missing"),
    (str | datetime, NOW, ValueError, "content would come back as a str: '2026"),
    (Square | SameAsSquare, SameAsSquare(1.0), ValueError, "content would come back as a Square"),
    (Circle | Square, 3, TypeError, "content is an int, not a Circle | Square"),
]


@pytest.mark.parametrize(("kind", "value", "error", "text"), MISFITS, ids=[text for *_, text in MISFITS])
def test_what_does_not_fit_is_refused_by_its_place_and_nothing_is_written(open_queue, kind, value, error, text):
    with open_queue(type=kind) as queue:
        for attempt in (
            lambda: queue.enqueue(value),
            lambda: queue.enqueue_many([value]),
            lambda: queue.enqueue_many([NewItem(value, priority=1)]),
            lambda: queue.schedule("s", value, every=60),
        ):
            with pytest.raises(error) as raised:
                attempt()
            assert text in str(raised.value)
            assert type(raised.value) is error
        assert queue.pending() == 0
        assert queue.schedules() == []


def test_all_or_nothing_holds_for_typed_items_too(open_queue):
    with open_queue(type=Page) as queue:
        with pytest.raises(TypeError, match="content is a str"):
            queue.enqueue_many([Page(1), NewItem(Page(2)), "three"])
        assert queue.pending() == 0
        assert len(queue.enqueue_many([Page(1), NewItem(Page(2), priority=1)])) == 2
        assert [item.content for item in queue.claim_many(2)] == [Page(2), Page(1)]


def test_content_that_contains_itself_is_refused(open_queue):
    doc = Doc("loop")
    doc.parent = doc
    with open_queue(type=Doc) as queue, pytest.raises(ValueError, match="contains itself"):
        queue.enqueue(doc)


@dataclass
class Tuned:
    hidden: InitVar[int] = 0


@dataclass
class Lost:
    what: complex


class Nowhere(TypedDict):
    what: Missing  # noqa: F821 - on purpose


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (complex, "content cannot be a complex"),
        (Lost, "Lost.what: content cannot be a complex"),
        (list[Lost], "Lost.what: content cannot be a complex"),
        (Tuned, "Tuned takes hidden"),
        (Nowhere, "the annotations of Nowhere cannot be read: name 'Missing' is not defined"),
        (dict[int, str], "keys that are no text"),
        (Many, "content cannot be a Many"),
        (Unwritable, "Unwritable has the value (1, 2)"),
        ("Doc", "content cannot be a 'Doc'"),
        (3, "content cannot be a 3"),
        (type[int], "content cannot be"),
        (threading.Thread, "content cannot be a Thread"),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [Queue, AsyncQueue])
def test_a_type_that_is_not_known_is_refused_before_the_file_is_touched(address, engine, make, kind, text):
    with pytest.raises(TypeError) as raised:
        make(address, type=kind)
    assert text in str(raised.value)
    assert not engine.exists()


def test_a_type_may_be_given_in_brackets(address):
    with Queue[Page](address) as queue, Queue[Page](address, type=Page) as same, Queue[Any](address) as plain:
        assert (queue.type, same.type, plain.type) == (Page, Page, None)
        queue.enqueue(Page(1))
        assert plain.get(1).content == {"number": 1, "text": ""}
    with pytest.raises(TypeError, match="cannot be opened with"):
        Queue[Page](address, type=Doc)


def test_a_subclass_may_say_the_type_in_brackets(address):
    class Pages(Queue[Page]):
        pass

    class Special(Pages):
        pass

    with Special(address) as queue:
        assert queue.type is Page
        assert type(queue) is Special
    with pytest.raises(TypeError, match="content is a str"):
        asyncio.run(first_enqueue(address))


async def first_enqueue(address):
    class Pages(AsyncQueue[Page]):
        pass

    async with Pages(address) as queue:
        await queue.enqueue("text")


def test_items_are_subscriptable():
    assert Item[Page].__origin__ is Item
    assert NewItem[Page].__args__ == (Page,)


def test_a_typed_queue_pickles_with_its_type(open_queue):
    with open_queue("pages", type=Page) as queue, pickle.loads(pickle.dumps(queue)) as other:
        assert (other.name, other.type) == ("pages", Page)


def test_schedules_enqueue_typed_content(open_queue, clock):
    with open_queue(type=Page) as queue:
        queue.schedule("pages", Page(1), every=60)
        clock.advance(60)
        assert queue.claim().content == Page(1)


def test_no_library_is_needed_and_nothing_is_imported_for_a_plain_queue(address):
    subprocess.run([sys.executable, PROGRAMS / "typed_without_libraries.py", address], check=True)


def test_a_spawned_worker_knows_the_type(open_queue, tmp_path, monkeypatch):
    shutil.copy(PROGRAMS / "typed_notes.py", tmp_path / "typed_notes.py")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "typed_notes", raising=False)
    import typed_notes

    with open_queue(type=typed_notes.Note) as queue:
        qid = queue.enqueue(typed_notes.Note("x"))
        assert queue.spawn_worker("typed_notes:plain", linger=0)
        assert queue.wait(qid, timeout=60).result == "Note"
    with open_queue("other", type=list[typed_notes.Note]) as queue:
        with pytest.raises(ValueError, match="cannot import the type"):
            queue.enqueue([typed_notes.Note("x")], spawn="typed_notes:plain")
        assert queue.pending() == 0


def test_the_command_opens_the_queue_in_the_type_a_handler_asks_for(open_queue, address, tmp_path):
    shutil.copy(PROGRAMS / "typed_notes.py", tmp_path / "typed_notes.py")
    with open_queue() as queue:
        queue.enqueue({"text": "x"})
        command = [sys.executable, "-m", "membox_queue", "process", "typed_notes:asking", "--db", str(address)]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        assert queue.get(1).result == "Note"


def test_a_type_inside_a_function_may_contain_itself(open_queue):
    @dataclass
    class Node:
        children: list[Node] = field(default_factory=list)
        one: Node | None = None

    tree = Node([Node(), Node([Node()])], Node())
    with open_queue(type=Node) as queue, open_queue() as plain:
        assert queue.get(queue.enqueue(tree)).content == tree
        plain.enqueue({"children": [{"children": [{"one": 3}]}]})
        assert queue.claim_many(5)[0].content == tree
        assert "content.children[0].children[0].one is an int, not a Node | None" in queue.get(2).error


def test_final_says_nothing_about_a_value(open_queue):
    @dataclass
    class Fixed:
        number: Final[int] = 3

    with open_queue(type=Fixed) as queue:
        assert queue.get(queue.enqueue(Fixed())).content == Fixed()
