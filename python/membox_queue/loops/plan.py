"""How a loop is run, checked before anything is claimed."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from membox_queue import _native
    from membox_queue.loops.progress import Progress

    Handler = Callable[[Any], Any]
    Middleware = Callable[[Any, Handler], Any]
    OnError = Callable[[BaseException, _native.Item | None, str], Any]


DEFAULT_GRACE = 30.0
"""Seconds that running handlers have to finish after a stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a loop is run; see `Queue.drain` and `Queue.work`."""

    concurrency: int = 1
    exclusive: bool = False
    stays: bool = False
    linger: float | timedelta = 0.0
    limit: int | None = None
    batch: Literal["group"] | None = None
    grace: float | timedelta = DEFAULT_GRACE
    max_runtime: float | timedelta | None = None
    middleware: Sequence[Middleware] = ()
    on_error: OnError | None = None
    progress: Progress = None
    lease_ttl: Any = None
    cancel_running: bool = True
    retry_failed: bool = False

    def __post_init__(self) -> None:
        if self.batch not in (None, "group"):
            raise ValueError(f"batch must be None or 'group', not {self.batch!r}")
        if not self.grace_seconds >= 0:
            raise ValueError(f"grace must be a number of seconds, zero or more, not {self.grace}")
        if callable(self.middleware):
            raise TypeError("middleware must be a list of callables; put this one into a list")
        for layer in self.middleware:
            check_call(layer, "middleware", "the item", "what calls the next")
        if self.on_error is not None:
            check_call(self.on_error, "on_error", "the exception", "the item", "the phase")
        if not callable(self.progress) and self.progress not in (None, True, False):
            raise TypeError(f"progress must be True or a callable, not {type(self.progress).__qualname__}")

    @property
    def grace_seconds(self) -> float:
        """The grace period in seconds."""
        grace: Any = self.grace.total_seconds() if isinstance(self.grace, timedelta) else self.grace
        if not isinstance(grace, int | float):
            raise TypeError(f"grace must be seconds or a timedelta, not {type(grace).__qualname__}")
        return grace


def planned(verb: str, options: Any, given: Mapping[str, Any], **fixed: Any) -> Plan:
    """Return the plan for what was given by name to a verb that takes these options."""
    for name in given:
        if name not in options.__optional_keys__:
            raise TypeError(f"{verb} got an unexpected keyword argument {name!r}")
    return Plan(**given, **fixed)


def check_call(function: Any, what: str, *arguments: str) -> None:
    """Refuse a function that does not take these arguments, before every item fails because of it."""
    if not callable(function):
        raise TypeError(f"{what} must be callable, not {type(function).__qualname__}")
    try:
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return  # it does not say what it takes
    try:
        signature.bind(*arguments)
    except TypeError as error:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise TypeError(f"{what} is called with {', '.join(arguments)}; {name}{signature} cannot be: {error}") from None
