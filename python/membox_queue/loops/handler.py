"""Registered handlers: a typed function whose arguments are the content of its queue."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, get_args, get_origin

from membox_queue import _native
from membox_queue._native import Item
from membox_queue.content.results import storable
from membox_queue.content.shape import Fields, Shape, codec_of, decoded, encoded
from membox_queue.loops.loop import HandlesItems
from membox_queue.opening import content_shape
from membox_queue.options import CallOptions
from membox_queue.signatures import shows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Concatenate, Protocol, Unpack, overload

    from membox_queue.aio import AsyncItem, AsyncQueue
    from membox_queue.queue import Queue

P = ParamSpec("P")
R = TypeVar("R")


class Arguments(Fields):
    """Named arguments, as a dict."""

    encode = Fields.write
    decode = Fields.read


class Payload:
    """The arguments of a function as the content of an item: a dict by their names.

    In a queue that has a type, the function takes one argument of that type, which is the whole content.
    """

    def __init__(self, function: Callable[..., Any], shape: Shape | None) -> None:
        if not inspect.isroutine(function):
            raise TypeError(f"a handler is made of a function, not {type(function).__qualname__}")
        self.name = function.__name__
        self.signature = inspect.signature(function)
        hints = hints_of(function)
        parameters = list(self.signature.parameters.values())
        self.wants_item = bool(parameters) and is_item(hints.get(parameters[0].name))
        if self.wants_item:
            self.signature = self.signature.replace(parameters=parameters[1:])
        for parameter in self.signature.parameters.values():
            check_parameter(self.name, parameter, hints)
        self.result = result_shape(hints.get("return"))
        self.is_whole = shape is not None
        names = list(self.signature.parameters)
        if shape is not None and [hints[name] for name in names] != [shape.type]:
            raise TypeError(f"the queue holds {shape.name}; {self.name} must take one argument of that type")
        self.fields = Arguments(
            "dict of its arguments",
            {} if self.is_whole else {name: argument_codec(self.name, name, hints[name]) for name in names},
            frozenset(name for name, one in self.signature.parameters.items() if one.default is one.empty),
            lambda name: f"[{name!r}]",
        )

    def pack(self, arguments: Any, named: Any) -> Any:
        """Return the content for a call. TypeError or ValueError if the function does not take these arguments."""
        try:
            bound = self.signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        if self.is_whole:
            bound.apply_defaults()
            return next(iter(bound.arguments.values()))
        return encoded(self.fields, bound.arguments)

    def unpack(self, item: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for an item. `ContentError` if the content does not match them."""
        bound = inspect.BoundArguments(self.signature, {})
        if self.is_whole:
            bound.arguments = {next(iter(self.signature.parameters)): item.content}
        else:
            bound.arguments = decoded(self.fields, item.content, self.name)
        return ((item, *bound.args) if self.wants_item else bound.args), bound.kwargs

    def pack_result(self, result: Any) -> Any:
        """Return the result as JSON by the annotated return type. TypeError or ValueError if it does not match."""
        if self.result is None or isinstance(result, _native.Next):
            return result
        try:
            return self.result.encode(result)
        except (TypeError, ValueError) as error:
            # An instance of a subclass fits, too, and is stored as what it is.
            if is_instance(result, self.result.type):
                return storable(result)
            said = str(error).replace("content", "the result", 1)
            raise type(error)(f"the result of {self.name} does not fit {self.result.name}: {said}") from None


class Registered(HandlesItems, Generic[P, R]):
    """A function that handles a queue. Calling it runs the function directly, which is useful in tests."""

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable[..., R], shape: Shape | None) -> None:
        functools.update_wrapper(self, function)
        self.shape = shape
        self.function = function
        """The function itself."""
        self.payload = Payload(function, shape)
        is_async = inspect.iscoroutinefunction(function)
        self.handle = self._handle_async if is_async else self._handle

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Run the function."""
        if self.payload.wants_item:
            raise TypeError(f"{self.payload.name} asks for its item; call {self.payload.name}.function(item, …)")
        return self.function(*arguments, **named)

    def _handle(self, item: Any) -> Any:
        arguments, named = self.payload.unpack(item)
        return self.payload.pack_result(self.function(*arguments, **named))

    async def _handle_async(self, item: Any) -> Any:
        arguments, named = self.payload.unpack(item)
        result: Any = self.function(*arguments, **named)
        return self.payload.pack_result(await result)

    def __repr__(self) -> str:
        return f"<handler {self.payload.name}>"


class Handler(Registered[P, R]):
    """A function that `@queue.handler` made the handler of a queue."""

    def __init__(self, queue: Queue[Any], function: Callable[..., R]) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__name__} must be awaited; register it with an AsyncQueue")
        super().__init__(function, content_shape(queue))
        self.queue = queue
        """The queue that it handles."""

    def enqueue(self, *arguments: P.args, **named: P.kwargs) -> int:
        """Enqueue a call with these arguments, and return the item's id."""
        return self.queue.enqueue(self.payload.pack(arguments, named))

    def item(self, *arguments: P.args, **named: P.kwargs) -> _native.NewItem[Any]:
        """Return a call with these arguments for `enqueue_many` and `Item.enqueue`."""
        return _native.NewItem(self.payload.pack(arguments, named), queue=self.queue)

    def next(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """Return the next stage: a handler that returns it lets its item go on with a call of this one."""
        return _native.Next(self.payload.pack(arguments, named), queue=self.queue)

    @shows(CallOptions, lambda: _native.Queue.enqueue)
    def options(self, **options: Unpack[CallOptions]) -> Prepared[P]:
        """Set options of the next item, as in `Queue.enqueue`: `send.options(delay=30).enqueue("you", "hello")`."""
        return Prepared(self, options)


class Prepared(Generic[P]):
    """A handler and the options of the next item."""

    def __init__(self, handler: Handler[P, Any], options: CallOptions) -> None:
        self._handler = handler
        self._options = options

    def enqueue(self, *arguments: P.args, **named: P.kwargs) -> int | Any:
        """Enqueue a call with these arguments and the options, and return the item's id; None if it was skipped."""
        options: Any = self._options
        return self._handler.queue.enqueue(self._handler.payload.pack(arguments, named), **options)

    def item(self, *arguments: P.args, **named: P.kwargs) -> _native.NewItem[Any]:
        """Return a call with these arguments and the options for `enqueue_many` and `Item.enqueue`."""
        options: Any = self._options
        return _native.NewItem(self._handler.payload.pack(arguments, named), queue=self._handler.queue, **options)

    def next(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """Return the next stage with these arguments and the options."""
        options: Any = self._options
        return _native.Next(self._handler.payload.pack(arguments, named), queue=self._handler.queue, **options)


class AsyncHandler(Registered[P, R]):
    """A plain or coroutine function that `@queue.handler` made the handler of an `AsyncQueue`."""

    def __init__(self, queue: AsyncQueue[Any], function: Callable[..., R]) -> None:
        super().__init__(function, content_shape(queue))
        self.queue = queue
        """The queue that it handles."""

    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> int:
        """Enqueue a call with these arguments, and return the item's id."""
        return await self.queue.enqueue(self.payload.pack(arguments, named))

    def item(self, *arguments: P.args, **named: P.kwargs) -> _native.NewItem[Any]:
        """Return a call with these arguments for `enqueue_many` and `Item.enqueue`."""
        return _native.NewItem(self.payload.pack(arguments, named), queue=self.queue)

    def next(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """Return the next stage: a handler that returns it lets its item go on with a call of this one."""
        return _native.Next(self.payload.pack(arguments, named), queue=self.queue)

    @shows(CallOptions, lambda: _native.Queue.enqueue)
    def options(self, **options: Unpack[CallOptions]) -> AsyncPrepared[P]:
        """Set options of the next item, as in `Queue.enqueue`."""
        return AsyncPrepared(self, options)


class AsyncPrepared(Generic[P]):
    """A handler and the options of the next item."""

    def __init__(self, handler: AsyncHandler[P, Any], options: CallOptions) -> None:
        self._handler = handler
        self._options = options

    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> int | Any:
        """Enqueue a call with these arguments and the options, and return the item's id; None if it was skipped."""
        options: Any = self._options
        return await self._handler.queue.enqueue(self._handler.payload.pack(arguments, named), **options)

    def item(self, *arguments: P.args, **named: P.kwargs) -> _native.NewItem[Any]:
        """Return a call with these arguments and the options for `enqueue_many` and `Item.enqueue`."""
        options: Any = self._options
        return _native.NewItem(self._handler.payload.pack(arguments, named), queue=self._handler.queue, **options)

    def next(self, *arguments: P.args, **named: P.kwargs) -> Any:
        """Return the next stage with these arguments and the options."""
        options: Any = self._options
        return _native.Next(self._handler.payload.pack(arguments, named), queue=self._handler.queue, **options)


if TYPE_CHECKING:

    class Register(Protocol):
        """What `@queue.handler(name=…)` returns."""

        @overload
        def __call__(self, function: Callable[Concatenate[Item[Any], P], R], /) -> Handler[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> Handler[P, R]: ...

    class AsyncRegister(Protocol):
        """What `@queue.handler(name=…)` returns in asyncio."""

        @overload
        def __call__(
            self, function: Callable[Concatenate[AsyncItem[Any], P], Coroutine[Any, Any, R]], /
        ) -> AsyncHandler[P, Coroutine[Any, Any, R]]: ...
        @overload
        def __call__(self, function: Callable[Concatenate[Item[Any], P], R], /) -> AsyncHandler[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> AsyncHandler[P, R]: ...


def is_item(annotation: Any) -> bool:
    """Return whether a parameter asks for the item itself."""
    kind = get_origin(annotation) or annotation
    return kind is Item or getattr(kind, "__qualname__", None) == "AsyncItem"


def is_instance(value: Any, kind: Any) -> bool:
    """Return whether a value is an instance of a class; False for annotations that are none, and for a TypedDict."""
    try:
        return isinstance(kind, type) and isinstance(value, kind)
    except TypeError:
        return False


def type_wanted(handler: Any) -> Any:
    """Return the content type of a handler annotated with `Item[Doc]`; None without such an annotation."""
    if isinstance(handler, Registered) or not inspect.isroutine(handler):
        return None
    hints = hints_of(handler)
    first = next((hints.get(name) for name in inspect.signature(handler).parameters), None)
    wanted = get_args(first) if is_item(first) else ()
    return wanted[0] if wanted and wanted[0] is not Any else None


def check_parameter(name: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> None:
    """Raise TypeError for a parameter without a name or an annotation."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{name} takes {parameter}; each argument of a handler needs a name")
    if parameter.name not in hints:
        raise TypeError(f"the argument {parameter.name!r} of {name} needs an annotation")
    if is_item(hints[parameter.name]):
        raise TypeError(f"the item comes first: make {parameter.name!r} the first argument of {name}")


def argument_codec(function: str, name: str, annotation: Any) -> Any:
    """Return what converts one argument; an error names the argument."""
    try:
        return codec_of(annotation, {})
    except TypeError as error:
        raise TypeError(f"the argument {name!r} of {function}: {error}") from None


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations of a function."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"the annotations of {function.__name__} cannot be read: {error}") from error


def result_shape(annotation: Any) -> Shape | None:
    """Return what converts the result; None if its annotation is missing or unknown."""
    try:
        return None if annotation in (None, Any) else Shape(annotation)
    except TypeError:
        return None
