"""type=: content that is a pydantic model or a msgspec struct."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

msgspec = pytest.importorskip("msgspec")
pydantic = pytest.importorskip("pydantic")

NOW = datetime(2026, 11, 16, 10, 30, 15, 123456, UTC)


class Model(pydantic.BaseModel):
    name: str
    at: datetime
    size: int = pydantic.Field(default=1, gt=0, alias="Size")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")
    at: datetime


class Root(pydantic.RootModel[list[int]]):
    pass


class Struct(msgspec.Struct):
    name: str
    at: datetime
    numbers: Annotated[list[int], msgspec.Meta(max_length=3)] = []  # noqa: RUF012 - msgspec gives each struct its own


@dataclass
class Mixed:
    model: Model
    struct: Struct
    any: Any = None


FITTING = [
    (Model, Model(name="n", at=NOW, Size=3)),
    (Strict, Strict(at=NOW)),
    (Root, Root([1, 2])),
    (Struct, Struct("n", NOW, [1])),
    (Model | None, None),
    (Mixed, Mixed(Model(name="n", at=NOW), Struct("s", NOW), {"a": 1})),
]


@pytest.mark.parametrize(("kind", "value"), FITTING, ids=[str(kind) for kind, _ in FITTING])
def test_content_comes_back_equal_and_of_the_same_type(open_queue, kind, value):
    with open_queue(type=kind) as queue:
        read = queue.get(queue.enqueue(value)).content
        claimed = queue.claim().content
    assert (read, claimed) == (value, value)
    assert type(read) is type(claimed) is type(value)


MISFITS = [
    (Model, {"name": "n"}, TypeError, "content is a dict, not a Model"),
    (Model, Model.model_construct(name=1, at=NOW), ValueError, "content.name is wrong: Input should be a valid string"),
    (Model, Model.model_construct(name="n", at=NOW, size=0), ValueError, "content.Size is wrong"),
    (Struct, Struct("n", NOW, ["a"]), ValueError, "content.numbers[0] is wrong: Expected `int`, got `str`"),
    (Struct, Struct("n", NOW, [1, 2, 3, 4]), ValueError, "content.numbers is wrong"),
]


@pytest.mark.parametrize(("kind", "value", "error", "text"), MISFITS, ids=[text for *_, text in MISFITS])
def test_what_does_not_fit_is_refused_by_its_place_and_nothing_is_written(open_queue, kind, value, error, text):
    with open_queue(type=kind) as queue:
        with pytest.raises(error) as raised:
            queue.enqueue(value)
        assert text in str(raised.value)
        assert type(raised.value) is error
        assert queue.pending() == 0


def test_a_model_that_does_not_fit_says_where(open_queue):
    with open_queue() as plain, open_queue(type=list[Model]) as models, open_queue(type=Struct) as structs:
        plain.enqueue_many([[{"name": 1, "at": "never"}], {"name": "n"}])
        assert models.claim() is None
        assert structs.claim() is None
        first, second = models.get(1).error, models.get(2).error
    assert "content[0].name is wrong: Input should be a valid string (and 1 more)" in first
    assert "the content does not fit list[" in second


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        (Model(name="a", at=NOW, Size=2), {"name": "a", "at": "2026-11-16T10:30:15.123456Z", "Size": 2}),
        ([Root([1, 2])], [[1, 2]]),
        (
            {"struct": Struct("n", NOW, [1])},
            {"struct": {"name": "n", "at": "2026-11-16T10:30:15.123456Z", "numbers": [1]}},
        ),
    ],
)
def test_a_model_that_a_handler_returns_is_stored_as_its_result(queue, result, stored):
    queue.enqueue_many(["x", "y"])
    assert queue.drain(lambda item: result, limit=1).unstored == 0
    assert queue.mark_done(queue.claim(), result)
    assert [item.result for item in queue.items()] == [stored] * 2
