"""`Queue[Doc]`: the type of a queue's content, given in brackets."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from membox_queue.content.shape import Shape


class TypedAlias(types.GenericAlias):
    """`Queue[Doc]`, which passes the type on when it is called."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Open a queue of this type."""
        given = type_of_alias(self)
        if given is not None and options.setdefault("type", given) != given:
            raise TypeError(f"{self} cannot be opened with type={options['type']}")
        open: Any = self.__origin__
        return open(*arguments, **options)


def type_of_alias(alias: TypedAlias) -> Any:
    """Return the type in the brackets; None if they hold Any or a type variable."""
    (type,) = alias.__args__
    return None if isinstance(type, TypeVar) or type is Any else type


def type_of_class(cls: type) -> Any:
    """Return the type of a subclass such as `class Docs(Queue[Doc])`; None if it has none."""
    bases = (base for parent in cls.__mro__ for base in vars(parent).get("__orig_bases__", ()))
    given = (type_of_alias(base) for base in bases if isinstance(base, TypedAlias))
    return next((type for type in given if type is not None), None)


def shape_of(type: Any) -> Shape | None:
    """Return what converts content of a type. The codecs are imported only if a type is given."""
    if type is None:
        return None
    from membox_queue.content.shape import Shape

    return Shape(type)
