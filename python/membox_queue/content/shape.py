"""Typed content: from an annotation to what checks and converts the content of a queue."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import inspect
import json
import types
import typing
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from membox_queue.content.codecs import (
    JSON,
    LEAVES,
    Anything,
    Choice,
    Codec,
    Exactly,
    FixedTuple,
    Later,
    Mapped,
    Misfit,
    OneOf,
    Several,
    with_article,
)
from membox_queue.errors import ContentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WRAPPERS = ("Annotated", "Final", "Required", "NotRequired", "ReadOnly")
"""Annotations that only qualify another one."""
LISTS: dict[Any, tuple[type, tuple[type, ...]]] = {
    list: (list, (list,)),
    set: (set, (set,)),
    frozenset: (frozenset, (frozenset,)),
    collections.abc.Sequence: (list, (list, tuple)),
}
KNOWN = (
    "dataclasses, TypedDict, pydantic models, msgspec structs, Enum, Literal, unions, list, tuple, set, dict, "
    "datetime, date, time, timedelta, Decimal, UUID, Path and what JSON knows"
)


class Shape:
    """The type of a queue's content; the queue calls `encode` before it writes and `decode` once it has claimed."""

    def __init__(self, type: Any) -> None:
        self.type = type
        self.name = name_of(type)
        # Bytes that are the whole content have a column's type of their own.
        self.codec = Exactly(bytes) if type is bytes else codec_of(type, {})

    def encode(self, value: Any) -> Any:
        """Return what is stored for a value. TypeError or ValueError name the place that does not match."""
        return encoded(self.codec, value)

    def decode(self, raw: Any) -> Any:
        """Return the value that was stored. `ContentError` names the place that does not match."""
        return decoded(self.codec, raw, self.name)


def encoded(codec: Codec, value: Any) -> Any:
    """Convert on the way into the queue."""
    try:
        return codec.encode(value)
    except Misfit as misfit:
        raise (TypeError if misfit.is_type else ValueError)(str(misfit)) from None
    except RecursionError:
        raise ValueError("content is nested too deep, or contains itself") from None


def decoded(codec: Codec, raw: Any, name: str) -> Any:
    """Convert on the way out."""
    try:
        return codec.decode(raw)
    except Misfit as misfit:
        raise ContentError(f"the content does not fit {name}: {misfit}") from misfit.__cause__


class Fields(Codec):
    """A dict with an annotation for each key: of a dataclass, a TypedDict, or the arguments of a function.

    Unknown keys are ignored: older or newer code may have written them.
    """

    kinds = frozenset((dict,))

    def __init__(
        self, name: str, fields: Mapping[str, Codec], required: frozenset[str], step: Callable[[str], str]
    ) -> None:
        self.name = name
        self.fields = dict(fields)
        self.required = required
        self.step = step

    def write(self, values: Mapping[str, Any], /) -> dict[str, Any]:
        """Each value by its own annotation."""
        self.check(values)
        return {name: self.at(self.fields[name].encode, value, name) for name, value in values.items()}

    def read(self, raw: Any, /) -> dict[str, Any]:
        """Each value by its own annotation."""
        if type(raw) is not dict:
            raise self.wrong_type(raw)
        self.check(raw)
        return {name: self.at(codec.decode, raw[name], name) for name, codec in self.fields.items() if name in raw}

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise Misfit if a required key is missing."""
        for name in self.fields:
            if name in self.required and name not in values:
                raise Misfit("is missing").inside(self.step(name))

    def at(self, convert: Callable[[Any], Any], value: Any, name: str) -> Any:
        """Convert one value; an error names its key."""
        try:
            return convert(value)
        except Misfit as misfit:
            raise misfit.inside(self.step(name)) from misfit.__cause__


class Record(Fields):
    """A dataclass, as a dict of its fields."""

    def __init__(self, kind: Any, known: dict[Any, Later]) -> None:
        hints = hints_of(kind)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        codecs = {field.name: part_of(kind, field.name, hints[field.name], known) for field in fields}
        missing = dataclasses.MISSING
        required = {field.name for field in fields if field.default is missing and field.default_factory is missing}
        super().__init__(kind.__name__, codecs, frozenset(required), lambda name: f".{name}")
        arguments = set(inspect.signature(kind).parameters)
        if arguments - set(codecs):
            raise TypeError(
                f"{kind.__name__} takes {', '.join(sorted(arguments - set(codecs)))}, which it does not keep"
            )
        self.kind = kind

    def encode(self, value: Any, /) -> dict[str, Any]:
        """As a dict."""
        if type(value) is not self.kind:
            raise self.wrong_type(value)
        return self.write({name: getattr(value, name) for name in self.fields})

    def decode(self, raw: Any, /) -> Any:
        """From a dict; errors of the class's own checks are included."""
        values = self.read(raw)
        try:
            return self.kind(**values)
        except Exception as error:
            raise Misfit(f"is refused by {self.name}: {type(error).__qualname__}: {error}") from error


class TypedKeys(Fields):
    """A TypedDict."""

    def __init__(self, kind: Any, known: dict[Any, Later]) -> None:
        hints = hints_of(kind)
        codecs = {name: part_of(kind, name, hint, known) for name, hint in hints.items()}
        # Where annotations are text, the class itself has not seen Required and NotRequired.
        said = {name: get_origin(hint) for name, hint in hints.items()}
        required = {
            name
            for name in hints
            if said[name] is typing.Required
            or (said[name] is not typing.NotRequired and name in kind.__required_keys__)
        }
        super().__init__(kind.__name__, codecs, frozenset(required), lambda name: f"[{name!r}]")

    def encode(self, value: Any, /) -> dict[str, Any]:
        """As a dict; an unknown key is refused, because it would be lost."""
        if type(value) is not dict:
            raise self.wrong_type(value)
        for name in value:
            if name not in self.fields:
                raise Misfit(f"is not a key of {self.name}").inside(f"[{name!r}]")
        return self.write(value)

    decode = Fields.read


class PydanticModel(Codec):
    """A pydantic model or dataclass: pydantic checks and converts."""

    def __init__(self, kind: Any) -> None:
        import pydantic

        self.name = kind.__name__
        self.kind = kind
        try:
            self.adapter = pydantic.TypeAdapter(kind)
        except pydantic.errors.PydanticUserError as error:
            raise TypeError(f"{self.name}: {error}") from error
        self.error = pydantic.ValidationError
        is_root = isinstance(kind, type) and issubclass(kind, pydantic.RootModel)
        self.kinds = JSON if is_root else frozenset((dict,))

    def encode(self, value: Any, /) -> Any:
        """As JSON; checked again, because it may have been changed since it was made."""
        if type(value) is not self.kind:
            raise self.wrong_type(value)
        try:
            raw = self.adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        except Exception as error:
            raise Misfit(f"cannot be written as JSON: {error}") from error
        self.decode(raw)
        return raw

    def decode(self, raw: Any, /) -> Any:
        """From JSON text: strict models, too, accept times as text there."""
        try:
            return self.adapter.validate_json(json.dumps(raw))
        except self.error as error:
            first, *others = error.errors(include_url=False, include_context=False)
            more = f" (and {len(others)} more)" if others else ""
            misfit = Misfit(f"is wrong: {first['msg']}{more}")
            for part in reversed(first["loc"]):
                misfit.inside(f"[{part}]" if isinstance(part, int) else f".{part}")
            raise misfit from error
        except (TypeError, ValueError) as error:
            raise Misfit(f"is refused by {self.name}: {error}") from error


class MsgspecStruct(Codec):
    """A msgspec struct: msgspec checks and converts."""

    def __init__(self, kind: Any) -> None:
        import msgspec

        self.name = kind.__name__
        self.kind = kind
        self.kinds = frozenset((list if kind.__struct_config__.array_like else dict,))
        self.to_plain = functools.partial(msgspec.to_builtins, str_keys=True)
        self.from_plain = functools.partial(msgspec.convert, type=kind, str_keys=True)
        try:
            msgspec.json.Decoder(kind)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from error

    def encode(self, value: Any, /) -> Any:
        """As JSON; checked now, because a struct checks nothing when it is made."""
        if type(value) is not self.kind:
            raise self.wrong_type(value)
        try:
            raw = self.to_plain(value)
        except Exception as error:
            raise Misfit(f"cannot be written as JSON: {error}") from error
        self.decode(raw)
        return raw

    def decode(self, raw: Any, /) -> Any:
        """From JSON."""
        try:
            return self.from_plain(raw)
        except Exception as error:
            # It says "Expected `int`, got `str` - at `$.pages[0]`".
            text, _, place = str(error).partition(" - at `$")
            raise Misfit(f"is wrong: {text}").inside(place.removesuffix("`")) from error


def codec_of(annotation: Any, known: dict[Any, Later]) -> Codec:
    """Return what converts values of an annotation; TypeError for one that is not supported.

    `known` are the types that are being read, so that one may contain itself.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object:
        return Anything()
    if annotation is None:
        return LEAVES[type(None)]
    if isinstance(annotation, typing.NewType):
        return codec_of(annotation.__supertype__, known)
    if any(annotation_is(origin, name) for name in WRAPPERS):
        return codec_of(arguments[0], known)
    if origin is Union or origin is types.UnionType:
        return OneOf([codec_of(member, known) for member in arguments])
    if origin is Literal:
        return Choice(name_of(annotation), arguments)
    if (collection := collection_of(annotation, origin, arguments, known)) is not None:
        return collection
    if origin is None and isinstance(annotation, type) and annotation in LEAVES:
        return LEAVES[annotation]
    if origin is None and (isinstance(annotation, type) or hasattr(annotation, "__value__")):
        return known.get(annotation) or named_type(annotation, known)
    raise unknown(annotation)


def collection_of(annotation: Any, origin: Any, arguments: tuple[Any, ...], known: dict[Any, Later]) -> Codec | None:
    """What converts lists, tuples, sets and dicts, with or without annotations for their elements."""
    kind = origin or annotation
    if kind is tuple and arguments and arguments[-1:] != (...,):
        return FixedTuple([codec_of(argument, known) for argument in arguments])
    if kind is tuple or kind in (LISTS if isinstance(kind, collections.abc.Hashable) else ()):
        made, taken = (tuple, (tuple,)) if kind is tuple else LISTS[kind]
        return Several(codec_of(arguments[0], known) if arguments else Anything(), made, taken)
    if kind is dict or kind is collections.abc.Mapping:
        key, value = (codec_of(argument, known) for argument in arguments or (str, Any))
        if key.kinds != {str}:
            raise TypeError(f"{name_of(annotation)} has keys that are no text in JSON; use dict[str, …]")
        return Mapped(key, value)
    return None


def named_type(kind: Any, known: dict[Any, Later]) -> Codec:
    """What converts a class, or a type alias."""
    is_alias = not isinstance(kind, type)
    later = known[kind] = Later(name_of(kind), JSON if is_alias else frozenset((dict,)))
    try:
        if is_alias:
            later.made = codec_of(kind.__value__, known)
        elif hasattr(kind, "__pydantic_validator__"):
            later.made = PydanticModel(kind)
        elif hasattr(kind, "__struct_fields__"):
            later.made = MsgspecStruct(kind)
        elif issubclass(kind, enum.Enum) and not issubclass(kind, enum.Flag):
            later.made = Choice(kind.__name__, list(kind))
        elif dataclasses.is_dataclass(kind):
            later.made = Record(kind, known)
        elif typing.is_typeddict(kind):
            later.made = TypedKeys(kind, known)
        else:
            raise unknown(kind)
    finally:
        del known[kind]
    return later.made


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the resolved annotations of a class, including references to itself."""
    try:
        return typing.get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)
    except NameError as error:
        raise TypeError(f"the annotations of {kind.__name__} cannot be read: {error}") from error


def part_of(kind: Any, name: str, annotation: Any, known: dict[Any, Later]) -> Codec:
    """Return what converts one field; an error names the field."""
    try:
        return codec_of(annotation, known)
    except TypeError as error:
        raise TypeError(f"{kind.__name__}.{name}: {error}") from None


def annotation_is(origin: Any, name: str) -> bool:
    """Return whether an origin has that name in `typing` or its backport."""
    return getattr(origin, "__name__", getattr(origin, "_name", None)) == name and not isinstance(origin, str)


def name_of(annotation: Any) -> str:
    """Return an annotation as people write it."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__.rpartition("<locals>.")[2]
    return str(annotation).replace("typing.", "")


def unknown(annotation: Any) -> TypeError:
    """Return the error for a type that content cannot have."""
    given = repr(annotation) if isinstance(annotation, str) else name_of(annotation)
    return TypeError(f"content cannot be {with_article(given)}; known are {KNOWN}")
