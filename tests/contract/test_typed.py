"""type=: content is checked when it is enqueued and when it is claimed, and comes back as what it was."""

# ruff: noqa: UP007, UP045 - both forms are written

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, NewType, NotRequired, Optional, Required, TypedDict, Union
from uuid import UUID

import pytest
from membox_queue import AsyncQueue, ContentError, DrainReport, Item, NewItem, Queue, Retry

NOW = datetime(2026, 11, 16, 10, 30, 15, 123456, UTC)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


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
class Page:
    number: int
    text: str = ""


@dataclass
class Doc:
    title: str
    at: datetime | None = None
    color: Color = Color.RED
    kind: Literal["note", "mail", 3] = "note"
    pages: list[Page] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    parent: Optional[Doc] = None
    tags: frozenset[str] = frozenset()
    _: KW_ONLY
    length: int = field(init=False, default=0)
    is_read: bool = False

    def __post_init__(self) -> None:
        self.length = len(self.title)


@dataclass(frozen=True, slots=True)
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError("must be positive")


@dataclass
class Circle:
    radius: float


@dataclass
class Square:
    side: float


@dataclass
class SameAsSquare:
    side: float


class Letter(TypedDict):
    to: str
    at: NotRequired[datetime]
    copies: NotRequired[list[str]]


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
def test_content_comes_back_equal_and_of_the_same_type(path, kind, value):
    with Queue(path, type=kind) as queue:
        read = queue.get(queue.enqueue(value)).content
        claimed = queue.claim().content
    assert (read, claimed) == (value, value)
    assert type(read) is type(claimed) is type(value)


def test_what_is_stored_is_readable_json(path, sql):
    with Queue(path, type=Doc) as queue:
        queue.enqueue(Doc("t", NOW, pages=[Page(1)], tags=frozenset("cab")))
    stored = json.loads(sql(path, "SELECT content FROM ingest_queue")[0][0])
    assert stored["at"] == "2026-11-16T10:30:15.123456+00:00"
    assert stored["pages"] == [{"number": 1, "text": ""}]
    assert (stored["color"], stored["tags"]) == ("red", ["a", "b", "c"])
    assert "length" not in stored


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
def test_what_does_not_fit_is_refused_by_its_place_and_nothing_is_written(path, kind, value, error, text):
    with Queue(path, type=kind) as queue:
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


def test_all_or_nothing_holds_for_typed_items_too(path):
    with Queue(path, type=Page) as queue:
        with pytest.raises(TypeError, match="content is a str"):
            queue.enqueue_many([Page(1), NewItem(Page(2)), "three"])
        assert queue.pending() == 0
        assert len(queue.enqueue_many([Page(1), NewItem(Page(2), priority=1)])) == 2
        assert [item.content for item in queue.claim_many(2)] == [Page(2), Page(1)]


def test_content_that_contains_itself_is_refused(path):
    doc = Doc("loop")
    doc.parent = doc
    with Queue(path, type=Doc) as queue, pytest.raises(ValueError, match="contains itself"):
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
def test_a_type_that_is_not_known_is_refused_before_the_file_is_touched(path, make, kind, text):
    with pytest.raises(TypeError) as raised:
        make(path, type=kind)
    assert text in str(raised.value)
    assert not path.exists()


def test_a_type_may_be_given_in_brackets(path):
    with Queue[Page](path) as queue, Queue[Page](path, type=Page) as same, Queue[Any](path) as plain:
        assert (queue.type, same.type, plain.type) == (Page, Page, None)
        queue.enqueue(Page(1))
        assert plain.get(1).content == {"number": 1, "text": ""}
    with pytest.raises(TypeError, match="cannot be opened with"):
        Queue[Page](path, type=Doc)


def test_a_subclass_may_say_the_type_in_brackets(path):
    class Pages(Queue[Page]):
        pass

    class Special(Pages):
        pass

    with Special(path) as queue:
        assert queue.type is Page
        assert type(queue) is Special
    with pytest.raises(TypeError, match="content is a str"):
        asyncio.run(first_enqueue(path))


async def first_enqueue(path):
    class Pages(AsyncQueue[Page]):
        pass

    async with Pages(path) as queue:
        await queue.enqueue("text")


def test_items_are_subscriptable():
    assert Item[Page].__origin__ is Item
    assert NewItem[Page].__args__ == (Page,)


def test_a_typed_queue_pickles_with_its_type(path):
    with Queue(path, "pages", type=Page) as queue, pickle.loads(pickle.dumps(queue)) as other:
        assert (other.name, other.type) == ("pages", Page)


def test_schedules_enqueue_typed_content(path, clock):
    with Queue(path, type=Page) as queue:
        queue.schedule("pages", Page(1), every=60)
        clock.advance(60)
        assert queue.claim().content == Page(1)


# Written by older code, or by plain SQL.


@pytest.fixture
def pages(path):
    with Queue(path, type=Page) as queue:
        yield queue


@pytest.fixture
def mixed(path, pages):
    """Good and bad content, in turn; the good is numbered."""
    with Queue(path) as plain:
        for number in range(1, 4):
            plain.enqueue_many([{"text": f"bad {number}"}, {"number": number}])
        plain.enqueue("raw text")
    return pages


def errors(queue):
    return [item.error for item in queue.items("failed")]


MISSING = "ContentError: the content does not fit Page: content.number is missing"
RAW = "ContentError: the content does not fit Page: content is a str, not a Page"
ALL_BAD = [MISSING, MISSING, MISSING, RAW]


def test_a_claim_goes_on_to_the_next_item_that_fits(mixed):
    assert [mixed.claim().content for _ in range(3)] == [Page(1), Page(2), Page(3)]
    assert errors(mixed) == ALL_BAD[:3]
    assert mixed.claim() is None
    assert errors(mixed) == ALL_BAD
    assert mixed.counts() == {**mixed.counts(), "pending": 0, "processing": 3, "failed": 4}


def test_a_claim_that_waits_goes_on_waiting_after_one_that_does_not_fit(pages, path):
    found = []
    waiting = threading.Thread(target=lambda: found.append(pages.claim(wait=60)))
    with Queue(path) as plain:
        waiting.start()
        bad = plain.enqueue("bad")
        assert plain.wait(bad, timeout=60).status == "failed"
        plain.enqueue({"number": 1})
        waiting.join(60)
    assert [item.content for item in found] == [Page(1)]


def test_a_batch_has_those_that_fit(mixed):
    assert [item.content for item in mixed.claim_many(10)] == [Page(1), Page(2), Page(3)]
    assert errors(mixed) == ALL_BAD
    assert mixed.claim_many(10) == []


def test_an_empty_batch_means_that_nothing_is_due(mixed):
    assert [item.content for item in mixed.claim_many(1)] == [Page(1)]


def test_the_failure_is_counted_and_kept_with_the_content_as_it_was(mixed, sql, path):
    mixed.claim()
    item = mixed.get(1)
    assert (item.status, item.retries, item.error, item.content) == ("failed", 1, MISSING, {"text": "bad 1"})
    assert [failed.content for failed in mixed.failures()] == [{"text": "bad 1"}]
    assert [attempt.ending for attempt in mixed.history(1)] == ["failed"]
    assert sql(path, "SELECT content FROM ingest_queue WHERE id = 1") == [['{"text":"bad 1"}']]


def test_with_a_policy_it_is_tried_again_for_code_that_knows_better(path, clock):
    with Queue(path, type=Page, retry=Retry(max=3, base=10, jitter=0)) as queue, Queue(path) as plain:
        plain.enqueue({"text": "older"})
        assert queue.claim() is None
        assert (queue.get(1).status, queue.get(1).retries) == ("pending", 1)
        clock.advance(10)
        assert plain.claim().content == {"text": "older"}


def test_looking_shows_what_fits_in_its_type_and_the_rest_as_it_is_stored(mixed):
    assert [item.content for item in mixed.items()] == [
        {"text": "bad 1"},
        Page(1),
        {"text": "bad 2"},
        Page(2),
        {"text": "bad 3"},
        Page(3),
        "raw text",
    ]


def test_what_a_dataclass_says_against_its_values_is_told(path):
    with Queue(path, type=list[Positive]) as queue, Queue(path) as plain:
        plain.enqueue([{"number": 1}, {"number": 0}])
        assert queue.claim() is None
        assert "content[1] is refused by Positive: ValueError: must be positive" in queue.get(1).error


def test_keys_that_the_type_does_not_have_are_passed_over(path):
    with Queue(path) as plain, Queue(path, type=Page) as pages, Queue(path, type=Letter) as letters:
        plain.enqueue_many([{"number": 1, "new": True}, {"to": "you", "new": True}])
        assert pages.claim().content == Page(1)
        assert letters.claim().content == {"to": "you"}


def test_a_group_is_handed_out_up_to_the_first_that_does_not_fit(pages, path):
    with Queue(path) as plain:
        for content in ({"number": 1}, {"number": 2}, "bad", {"number": 3}):
            plain.enqueue(content, group="g")
    batch = pages.claim_group()
    assert [item.content for item in batch] == [Page(1), Page(2)]
    assert [item.status for item in pages.items()] == ["processing", "processing", "failed", "pending"]
    assert pages.claim_group() == []
    assert pages.mark_done_many(batch) == 2
    (last,) = pages.claim_group()
    assert (last.content, last.retries) == (Page(3), 0)


def test_a_group_whose_first_does_not_fit_goes_on_with_the_rest(pages, path):
    with Queue(path) as plain:
        for content in ("bad", "worse", {"number": 1}):
            plain.enqueue(content, group="g")
    assert [item.content for item in pages.claim_group()] == [Page(1)]
    assert errors(pages) == [RAW, RAW]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_drain_fails_what_does_not_fit_and_handles_the_rest(mixed, concurrency):
    seen, told = [], []
    report = mixed.drain(
        lambda item: seen.append(item.content),
        concurrency=concurrency,
        on_error=lambda error, item, phase: told.append((type(error), phase)),
    )
    assert report == DrainReport(done=3, failed=4)
    assert sorted(page.number for page in seen) == [1, 2, 3]
    assert told == [(ContentError, "handler")] * 4
    assert errors(mixed) == ALL_BAD


def test_whoever_looks_at_the_progress_sees_typed_content_too(mixed):
    seen, handled = [], []
    mixed.drain(
        lambda item: handled.append(item.content),
        progress=lambda event: seen.append((event.kind, event.item.content)),
    )
    assert handled == [Page(1), Page(2), Page(3)]
    assert [content for kind, content in seen if kind == "done"] == handled
    assert [content for kind, content in seen if kind == "claimed"][:2] == [{"text": "bad 1"}, Page(1)]


def test_work_goes_on_after_what_does_not_fit(mixed):
    seen = []
    assert mixed.work(lambda item: seen.append(item.content), limit=7) == DrainReport(done=3, failed=4)
    assert seen == [Page(1), Page(2), Page(3)]


def test_a_drain_of_whole_groups_keeps_their_order(pages, path):
    with Queue(path) as plain:
        for content in ("bad", {"number": 1}, {"number": 2}, "bad", {"number": 3}):
            plain.enqueue(content, group="g")
        plain.enqueue({"number": 9})
    seen = []

    def handler(items):
        seen.append([item.content.number for item in items])
        return [item.content.number for item in items]

    report = pages.drain(handler, batch="group")
    assert sorted(seen) == [[1, 2], [3], [9]]
    assert (report.done, report.failed, report.lost) == (4, 2, 0)
    assert [item.result for item in pages.items("done")] == [1, 2, 3, 9]
    assert all(item.retries == 0 for item in pages.items("done"))


def test_with_item_has_typed_content(mixed):
    with mixed.claim() as item:
        assert item.content == Page(1)
    assert mixed.get(item.id).status == "done"
    assert mixed.wait(item.id).content == Page(1)


def test_asyncio_has_typed_content_and_goes_on_after_what_does_not_fit(mixed, path):
    async def main():
        async with AsyncQueue[Page](path) as queue:
            with pytest.raises(TypeError, match="content is a str"):
                await queue.enqueue("bad")
            async for item in queue:
                async with item:
                    first = item.content
                break
            (second,) = await queue.claim_many(1)
            assert await queue.mark_done(second)
            seen = []

            async def handler(item):
                seen.append(item.content)

            report = await queue.drain(handler)
            shown = await queue.get(2)
            return first, second.content, seen, report, shown.content

    first, second, seen, report, shown = asyncio.run(main())
    assert (first, second, seen, shown) == (Page(1), Page(2), [Page(3)], Page(1))
    assert report == DrainReport(done=1, failed=2)
    assert errors(mixed) == ALL_BAD


def test_what_only_stops_the_program_gives_everything_back(path):
    class Shape:
        def __init__(self):
            self.left = 2

        def decode(self, raw):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return raw

    with Queue(path) as queue:
        queue.enqueue_many(["a", "b", "c"])
        queue._take_shape(Shape())
        with pytest.raises(KeyboardInterrupt):
            queue.claim_many(3)
    with Queue(path) as queue:
        assert [(item.status, item.retries) for item in queue.items()] == [("pending", 0)] * 3


WITHOUT_LIBRARIES = """
import sys
from dataclasses import dataclass
from typing import TypedDict

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pydantic", "msgspec", "typing_extensions"):
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from membox_queue import Queue

with Queue(":memory:") as queue:
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
    with Queue(":memory:", type=kind) as queue:
        queue.enqueue(value)
        assert queue.claim().content == value
"""


def test_no_library_is_needed_and_nothing_is_imported_for_a_plain_queue():
    subprocess.run([sys.executable, "-c", WITHOUT_LIBRARIES], check=True)


HANDLERS = """
from dataclasses import dataclass
from membox_queue import Item

@dataclass
class Note:
    text: str

def plain(item):
    return type(item.content).__name__

def asking(item: Item[Note]):
    return type(item.content).__name__
"""


def test_a_spawned_worker_knows_the_type(path, tmp_path, monkeypatch):
    (tmp_path / "typed_notes.py").write_text(HANDLERS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "typed_notes", raising=False)
    import typed_notes

    with Queue(path, type=typed_notes.Note) as queue:
        qid = queue.enqueue(typed_notes.Note("x"))
        assert queue.spawn_worker("typed_notes:plain", linger=0)
        assert queue.wait(qid, timeout=60).result == "Note"
    with Queue(path, "other", type=list[typed_notes.Note]) as queue:
        with pytest.raises(ValueError, match="cannot import the type"):
            queue.enqueue([typed_notes.Note("x")], spawn="typed_notes:plain")
        assert queue.pending() == 0


def test_the_command_opens_the_queue_in_the_type_a_handler_asks_for(path, tmp_path):
    (tmp_path / "typed_notes.py").write_text(HANDLERS, encoding="utf-8")
    with Queue(path) as queue:
        queue.enqueue({"text": "x"})
        command = [sys.executable, "-m", "membox_queue", "process", "typed_notes:asking", "--db", str(path)]
        subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
        assert queue.get(1).result == "Note"


def test_a_type_inside_a_function_may_contain_itself(path):
    @dataclass
    class Node:
        children: list[Node] = field(default_factory=list)
        one: Node | None = None

    tree = Node([Node(), Node([Node()])], Node())
    with Queue(path, type=Node) as queue, Queue(path) as plain:
        assert queue.get(queue.enqueue(tree)).content == tree
        plain.enqueue({"children": [{"children": [{"one": 3}]}]})
        assert queue.claim_many(5)[0].content == tree
        assert "content.children[0].children[0].one is an int, not a Node | None" in queue.get(2).error


def test_final_says_nothing_about_a_value(path):
    @dataclass
    class Fixed:
        number: Final[int] = 3

    with Queue(path, type=Fixed) as queue:
        assert queue.get(queue.enqueue(Fixed())).content == Fixed()
