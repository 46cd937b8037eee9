"""The signatures that `help()` and `inspect.signature` show for functions that pass options on by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import MappingProxyType

F = TypeVar("F", bound="Callable[..., Any]")


def shows(options: Any, source: Callable[[], Callable[..., Any]]) -> Callable[[F], F]:
    """Show the options of a TypedDict, as `source()` has them, in the place of a function's `**options`."""

    def show(function: F) -> F:
        function.__signature__ = ShownSignature(function, options, source)  # type: ignore[attr-defined]
        return function

    return show


class ShownSignature(inspect.Signature):
    """A signature that is made when it is first read: making one of a native function takes milliseconds."""

    def __init__(self, function: Callable[..., Any], options: Any, source: Callable[[], Callable[..., Any]]) -> None:
        self._function = function
        self._options = options
        self._source = source
        self._made: inspect.Signature | None = None

    def made(self) -> inspect.Signature:
        """Return the plain signature."""
        if self._made is None:
            vars(self._function).pop("__signature__", None)
            own = inspect.signature(self._function)
            kept = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
            names = self._options.__optional_keys__ - {each.name for each in kept}
            offered = inspect.signature(self._source()).parameters.values()
            self._made = own.replace(parameters=[*kept, *(each for each in offered if each.name in names)])
            self._function.__signature__ = self._made  # type: ignore[attr-defined]
        return self._made

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        """The parameters in their order."""
        return self.made().parameters

    @property
    def return_annotation(self) -> Any:
        """The annotated type of the result."""
        return self.made().return_annotation

    def replace(self, **changes: Any) -> Any:
        """Return a plain signature with other parameters or another result."""
        return self.made().replace(**changes)
