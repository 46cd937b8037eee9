"""Results without an annotation: from the values that typed content knows to JSON values."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from membox_queue.content.codecs import JSON, LEAVES, Misfit

TEXTS = {kind: codec for kind, codec in LEAVES.items() if kind not in JSON}


def storable(value: Any) -> Any:
    """Return the JSON value that stands for a result; what cannot be converted is left for the store to refuse."""
    try:
        return converted(value)
    except Exception:
        return value


def converted(value: Any) -> Any:
    """Convert a value, and the values in it, by its type."""
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        return value
    if isinstance(value, enum.Enum):
        return converted(value.value)
    if isinstance(value, dict):
        return {converted(key): converted(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [converted(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((converted(each) for each in value), key=repr)
    # Of a pydantic model or dataclass, and of a msgspec struct.
    if hasattr(kind, "__pydantic_serializer__"):
        return kind.__pydantic_serializer__.to_python(value, mode="json", by_alias=True)
    if hasattr(kind, "__struct_fields__"):
        import msgspec

        return msgspec.to_builtins(value, str_keys=True)
    if dataclasses.is_dataclass(value):
        return {field.name: converted(getattr(value, field.name)) for field in dataclasses.fields(value)}
    codec = next((codec for known, codec in TEXTS.items() if isinstance(value, known)), None)
    try:
        return value if codec is None else codec.encode(value)
    except Misfit:
        return value
