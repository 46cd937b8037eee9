"""Registry: the handlers that were registered with one queue object, by the queue they serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

H = TypeVar("H")


class Registry(dict[str, H], Generic[H]):
    """One handler for each queue. `own` is the queue of the object itself."""

    def __init__(self, own: str) -> None:
        super().__init__()
        self.own = own

    def name_for(self, name: str | None, options: Mapping[str, Any]) -> str:
        """Return the queue that a new handler serves; one that has a handler already is refused."""
        if options and name in (None, self.own):
            raise TypeError("options are for a queue of the handler's own; give it a name of its own")
        name = self.own if name is None else name
        if name in self:
            taken = getattr(self[name], "__name__", name)
            raise ValueError(f"the queue {name!r} has a handler already: {taken}")
        return name

    def own_handler(self) -> H:
        """Return the handler of the object's own queue."""
        if self.own not in self:
            raise TypeError(f"the queue {self.own!r} has no handler; give one, or register it with @queue.handler")
        return self[self.own]
