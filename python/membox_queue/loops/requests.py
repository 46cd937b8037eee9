"""What a slot asks its driver to do: small values, so that threads and tasks run the same slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias, TypeVar

    from membox_queue.loops.plan import Handler

    T = TypeVar("T")
    Request: TypeAlias = "Call | Handle | Wait | Pause"
    Requests: TypeAlias = Generator[Request, Any, T]


@dataclass(slots=True)
class Call:
    """Call a function that needs the store; the answer is what it returns."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(slots=True)
class Handle:
    """Call the handler.

    The answer is a pair: the exception that was raised, or None; and what was returned, or with an exception whether
    the task that ran the handler was cancelled.
    """

    handler: Handler
    argument: Any


@dataclass(slots=True)
class Wait:
    """Wait until it is worth claiming again; the answer is False if only a slice of the wait is over."""

    slot: int


@dataclass(slots=True)
class Pause:
    """Sleep for some seconds before the store is tried again."""

    seconds: float
