"""One codec for each kind of annotation: converts its values to JSON values and back."""

from __future__ import annotations

import base64
import enum
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JSON = frozenset((type(None), bool, int, float, str, list, dict))
"""What a JSON value is in Python."""


class Misfit(Exception):  # noqa: N818 - becomes a TypeError, a ValueError or a ContentError
    """A value that is not what its annotation says, and where in the content it stands."""

    def __init__(self, text: str, *, is_type: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.is_type = is_type
        self.way: list[str] = []

    def inside(self, step: str) -> Misfit:
        """Add the place of the enclosing value."""
        self.way.append(step)
        return self

    def __str__(self) -> str:
        return f"content{''.join(reversed(self.way))} {self.text}"


class Codec:
    """Values of one annotation; `kinds` are the types of the JSON values they become."""

    name: str
    kinds: frozenset[type] = JSON

    def encode(self, value: Any, /) -> Any:
        """Make a JSON value of it, or raise `Misfit`."""
        raise NotImplementedError

    def decode(self, raw: Any, /) -> Any:
        """Make the value again, or raise `Misfit`."""
        raise NotImplementedError

    def wrong_type(self, value: Any) -> Misfit:
        """Return the error for a value of another type."""
        return Misfit(f"is {with_article(type(value).__qualname__)}, not {with_article(self.name)}", is_type=True)


class Anything(Codec):
    """Any JSON value; the store itself refuses what JSON cannot carry."""

    name = "JSON value"

    def encode(self, value: Any, /) -> Any:
        """As it is."""
        return value

    decode = encode


class Exactly(Codec):
    """A type that JSON knows, and no subclass of it."""

    def __init__(self, kind: type) -> None:
        self.name = "None" if kind is type(None) else kind.__name__
        self.kind = kind
        self.kinds = frozenset((kind,))

    def encode(self, value: Any, /) -> Any:
        """As it is."""
        if type(value) is not self.kind:
            raise self.wrong_type(value)
        return value

    decode = encode


class Real(Codec):
    """A float; a whole number is one too, as type checkers see it."""

    name = "float"
    kinds = frozenset((float, int))

    def encode(self, value: Any, /) -> Any:
        """As a float."""
        if type(value) is not float and type(value) is not int:
            raise self.wrong_type(value)
        try:
            return float(value)
        except OverflowError:
            raise Misfit("is too large for a float") from None

    decode = encode


class Text(Codec):
    """A value with an exact form as text."""

    kinds = frozenset((str,))

    def __init__(self, kind: type, write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
        self.name = kind.__name__
        self.kind = kind
        self.write = write
        self.read = read

    def encode(self, value: Any, /) -> str:
        """As text."""
        if not isinstance(value, self.kind) or (self.kind is date and isinstance(value, datetime)):
            raise self.wrong_type(value)
        return self.write(value)

    def decode(self, raw: Any, /) -> Any:
        """From text."""
        if type(raw) is not str:
            raise self.wrong_type(raw)
        try:
            return self.read(raw)
        except (ValueError, ArithmeticError):
            raise Misfit(f"is {shown(raw)}, not {with_article(self.name)}") from None


class Duration(Codec):
    """A timedelta, as seconds."""

    name = "timedelta"
    kinds = frozenset((float, int))

    def encode(self, value: Any, /) -> float:
        """As seconds."""
        if not isinstance(value, timedelta):
            raise self.wrong_type(value)
        seconds = value.total_seconds()
        if timedelta(seconds=seconds) != value:
            raise Misfit(f"is {value}, whose seconds are no exact number")
        return seconds

    def decode(self, raw: Any, /) -> timedelta:
        """From seconds."""
        if type(raw) is not float and type(raw) is not int:
            raise self.wrong_type(raw)
        try:
            return timedelta(seconds=raw)
        except (ValueError, OverflowError):
            raise Misfit(f"is {shown(raw)}, too many seconds for a timedelta") from None


class Choice(Codec):
    """One of some values: of a Literal, or the members of an Enum, which stand for their values."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name = name
        self.by_raw: dict[tuple[type, Any], Any] = {}
        for value in values:
            raw = value.value if isinstance(value, enum.Enum) else value
            if type(raw) not in (str, int, bool, float, type(None)):
                raise TypeError(f"{name} has the value {shown(raw)}, which JSON cannot carry")
            self.by_raw[type(raw), raw] = value
        self.kinds = frozenset(kind for kind, _ in self.by_raw)

    def encode(self, value: Any, /) -> Any:
        """As the value that stands for it."""
        raw = value.value if isinstance(value, enum.Enum) else value
        found = self.find(raw)
        if type(found) is not type(value):
            raise self.wrong_type(value)
        return raw

    def decode(self, raw: Any, /) -> Any:
        """The one it stands for."""
        return self.find(raw)

    def find(self, raw: Any) -> Any:
        """Look a value up."""
        try:
            return self.by_raw[type(raw), raw]
        except (KeyError, TypeError):
            known = ", ".join(repr(raw) for _, raw in self.by_raw)
            raise Misfit(f"is {shown(raw)}, not one of {known}") from None


class Several(Codec):
    """A list, tuple or set of values of one annotation."""

    kinds = frozenset((list,))

    def __init__(self, element: Codec, made: type, taken: tuple[type, ...]) -> None:
        self.name = made.__name__
        self.element = element
        self.made = made
        self.taken = taken

    def encode(self, value: Any, /) -> list[Any]:
        """As a list; a set in an order of its own, so that the same set is always the same text."""
        if type(value) not in self.taken:
            raise self.wrong_type(value)
        encode = self.element.encode
        made = [at(encode, element, index) for index, element in enumerate(value)]
        return sorted(made, key=repr) if self.made in (set, frozenset) else made

    def decode(self, raw: Any, /) -> Any:
        """From a list."""
        if type(raw) is not list:
            raise self.wrong_type(raw)
        decode = self.element.decode
        elements = [at(decode, element, index) for index, element in enumerate(raw)]
        try:
            return elements if self.made is list else self.made(elements)
        except TypeError as error:
            raise Misfit(f"cannot be a {self.name}: {error}") from None


class FixedTuple(Codec):
    """A tuple with an annotation for each place."""

    name = "tuple"
    kinds = frozenset((list,))

    def __init__(self, elements: Sequence[Codec]) -> None:
        self.elements = elements

    def encode(self, value: Any, /) -> list[Any]:
        """As a list."""
        if type(value) is not tuple:
            raise self.wrong_type(value)
        return self.each(value, [codec.encode for codec in self.elements])

    def decode(self, raw: Any, /) -> tuple[Any, ...]:
        """From a list of as many."""
        if type(raw) is not list:
            raise self.wrong_type(raw)
        return tuple(self.each(raw, [codec.decode for codec in self.elements]))

    def each(self, values: Any, convert: Sequence[Callable[[Any], Any]]) -> list[Any]:
        """Convert each place by its own annotation."""
        if len(values) != len(convert):
            raise Misfit(f"has {len(values)} elements, not {len(convert)}")
        return [at(convert[index], value, index) for index, value in enumerate(values)]


class Mapped(Codec):
    """A dict whose keys are text in JSON."""

    name = "dict"
    kinds = frozenset((dict,))

    def __init__(self, key: Codec, value: Codec) -> None:
        self.key = key
        self.value = value

    def encode(self, value: Any, /) -> dict[str, Any]:
        """As a dict with text for keys."""
        if type(value) is not dict:
            raise self.wrong_type(value)
        return {at(self.key.encode, key, key): at(self.value.encode, element, key) for key, element in value.items()}

    def decode(self, raw: Any, /) -> dict[Any, Any]:
        """From such a dict."""
        if type(raw) is not dict:
            raise self.wrong_type(raw)
        return {at(self.key.decode, key, key): at(self.value.decode, element, key) for key, element in raw.items()}


class OneOf(Codec):
    """A union: the first member that a value fits."""

    def __init__(self, members: Sequence[Codec]) -> None:
        # Those that take more than their own come last.
        self.members = sorted(members, key=lambda member: isinstance(member, Real | Anything))
        self.name = " | ".join(member.name for member in members)
        self.kinds = frozenset().union(*(member.kinds for member in members))
        # Members that look alike in JSON may take each other's values for their own.
        self.is_ambiguous = sum(len(member.kinds) for member in members) > len(self.kinds)

    def encode(self, value: Any, /) -> Any:
        """By the first member it fits, if it comes back as it is."""
        raw = self.first([member.encode for member in self.members], value)
        if self.is_ambiguous:
            back = self.decode(raw)
            if type(back) is not type(value) or back != value:
                raise Misfit(f"would come back as {with_article(type(back).__qualname__)}: {shown(back)}")
        return raw

    def decode(self, raw: Any, /) -> Any:
        """By the first member it fits, of those that look like it."""
        return self.first([member.decode for member in self.members if type(raw) in member.kinds], raw)

    def first(self, conversions: Sequence[Callable[[Any], Any]], value: Any) -> Any:
        """Try the members in order. If only one came close, raise its own error."""
        errors = []
        for convert in conversions:
            try:
                return convert(value)
            except Misfit as misfit:
                errors.append(misfit)
        concerned = [error for error in errors if error.way or not error.is_type]
        if len(concerned) == 1:
            raise concerned[0]
        raise Misfit(f"fits none of {self.name}") if concerned else self.wrong_type(value)


class Later(Codec):
    """Stands for a codec that is still being made: of a type that contains itself."""

    def __init__(self, name: str, kinds: frozenset[type]) -> None:
        self.name = name
        self.kinds = kinds
        self.made: Codec | None = None

    def encode(self, value: Any, /) -> Any:
        """As the codec it stands for."""
        assert self.made is not None, "the type has been read"
        return self.made.encode(value)

    def decode(self, raw: Any, /) -> Any:
        """As the codec it stands for."""
        assert self.made is not None, "the type has been read"
        return self.made.decode(raw)


def at(convert: Callable[[Any], Any], value: Any, step: object) -> Any:
    """Convert an element; an error names its place."""
    try:
        return convert(value)
    except Misfit as misfit:
        raise misfit.inside(f"[{step!r}]") from None


def bytes_from_text(text: str) -> bytes:
    """Read base64."""
    return base64.b64decode(text, validate=True)


LEAVES: dict[type, Codec] = {
    str: Exactly(str),
    int: Exactly(int),
    bool: Exactly(bool),
    type(None): Exactly(type(None)),
    float: Real(),
    timedelta: Duration(),
    bytes: Text(bytes, lambda value: base64.b64encode(value).decode(), bytes_from_text),
    datetime: Text(datetime, datetime.isoformat, datetime.fromisoformat),
    date: Text(date, date.isoformat, date.fromisoformat),
    time: Text(time, time.isoformat, time.fromisoformat),
    UUID: Text(UUID, str, UUID),
    Decimal: Text(Decimal, str, Decimal),
    **{kind: Text(kind, str, kind) for kind in (Path, PurePath, PurePosixPath, PureWindowsPath)},
}


def shown(value: Any) -> str:
    """A value, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def with_article(name: str) -> str:
    """`an int`, `a str`."""
    if name == "NoneType" or name == "None":
        return "None"
    return f"{'an' if name[:1] in 'aeiouAEIO' else 'a'} {name}"
