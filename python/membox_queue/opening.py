"""Resolve a path, open a queue with the type of its content, close one without raising what cannot be released.

What an open queue knows of that is read here, too.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Protocol, TypeVar

from membox_queue import _native
from membox_queue.content.generic import shape_of
from membox_queue.errors import QueueError

logger = logging.getLogger("membox_queue")

Q = TypeVar("Q", bound="_native.Queue[Any]")


class Opened(Protocol):
    """What a `Queue` and an `AsyncQueue` know of how they were opened."""

    @property
    def _shape(self) -> Any: ...
    @property
    def _given(self) -> dict[str, Any]: ...
    @property
    def _reopen_options(self) -> dict[str, Any]: ...


def resolved(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the file that a path leads to now. A path that leads to none is unchanged; opening it raises."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not text or text == ":memory:" or text[:5].lower() == "file:" or not os.path.isdir(os.path.dirname(text) or "."):
        return path
    return os.path.realpath(text)


def open_queue(kind: type[Q], path: str | os.PathLike[str], name: str, *, type: Any = None, **options: Any) -> Q:
    """Open a queue of this class. A type that is not known raises TypeError before the file is touched."""
    shape = shape_of(type)
    queue = _native.Queue.__new__(kind, path, name, **options)
    if shape is not None:
        queue._set_shape(shape)
    return queue


def close_queue(queue: _native.Queue[Any]) -> None:
    """Close a queue. A worker lease or lock that cannot be released, because writing fails, is logged."""
    try:
        _native.Queue.close(queue)
    except QueueError as error:
        logger.warning("membox_queue could not release what the queue %r held: %s", queue.name, error)


def content_shape(queue: Opened) -> Any:
    """Return what converts the content of a queue to its type and back; None if it has no type."""
    return queue._shape


def given_options(queue: Opened) -> dict[str, Any]:
    """Return the options that a queue was opened with, without its type."""
    return queue._given


def reopen_options(queue: Opened) -> dict[str, Any]:
    """Return the options that open the same queue again, without its type; the file has its settings."""
    return queue._reopen_options
