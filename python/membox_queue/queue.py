"""Queue: the verbs of the native class, with loops, workers and registered handlers.

It is longer than most files: every verb of a queue has its words here.
"""

from __future__ import annotations

import functools
import secrets
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from membox_queue import _native
from membox_queue.connections import block, drive
from membox_queue.content.generic import TypedAlias, type_of_class
from membox_queue.document import document
from membox_queue.loops.iterate import claimed_items
from membox_queue.loops.loop import Loop
from membox_queue.loops.plan import Plan, planned
from membox_queue.loops.registry import Registry
from membox_queue.loops.threads import possible_now, run
from membox_queue.opening import close_queue, content_shape, open_queue, reopen_options
from membox_queue.options import DeliveryOptions, DrainOptions, QueueOptions, WorkOptions, inherited
from membox_queue.signatures import shows
from membox_queue.workers import names, spawn
from membox_queue.workers.pool import Worker

if TYPE_CHECKING:
    import builtins
    import os
    import types
    from collections.abc import Callable, Generator
    from datetime import date, timedelta
    from types import TracebackType
    from typing import Concatenate, Literal, Self, Unpack

    from typing_extensions import TypeVar as TypeVarWithDefault

    from membox_queue.loops.handler import Handler, Register
    from membox_queue.loops.report import DrainReport

    T = TypeVarWithDefault("T", default=Any)
else:
    T = TypeVar("T")

P = ParamSpec("P")
R = TypeVar("R")

has_queue = _native.has_queue

_native.set_runner(drive.run)


class Queue(_native.Queue[T]):
    """A named queue in an SQLite file.

    One object can be used by all threads. Every verb that needs the file waits for other writers by itself.

    `for item in queue:` claims forever, and waits while there is nothing to do. Each item is renewed until `with
    item:` or another verb ends its claim. An item whose claim nothing ended is released when the next one is asked for,
    or when the loop is left. Each thread needs a loop of its own.
    """

    @overload
    def __new__(
        cls,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        type: builtins.type[T],
        **options: Unpack[QueueOptions],
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        type: types.UnionType | None = None,
        **options: Unpack[QueueOptions],
    ) -> Self: ...
    @shows(QueueOptions, lambda: _native.Queue)
    def __new__(
        cls, path: str | os.PathLike[str], name: str = "ingest", *, type: Any = None, **options: Unpack[QueueOptions]
    ) -> Self:
        """Open or create the queue; see `_native.Queue` for the options.

        With a `type`, every content is of that type: a dataclass, a TypedDict, a pydantic model, a msgspec struct, or
        any annotation made of them and of JSON types. It is stored as JSON.

        - `enqueue` raises TypeError or ValueError for content that does not match, and writes nothing.
        - Stored content that does not match, because older code or plain SQL wrote it, fails its item when it is
          claimed. The claim goes on to the next item.
        - `get`, `items`, `failures` and `wait` return content that does not match as it is stored.
        - Keys that the type does not have are ignored.

        `Queue[Doc](path)` means the same as `Queue(path, type=Doc)`. Raises TypeError for a type that is not supported.
        """
        if type is None and cls is not Queue:
            type = type_of_class(cls)
        return open_queue(cls, path, name, type=type, **options)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, type: Any) -> Any:
            """`Queue[Doc]`: called, it opens a queue of that type."""
            return TypedAlias(cls, type)

    @property
    def type(self) -> Any:
        """The type of the content; None if the queue has no type."""
        shape = content_shape(self)
        return None if shape is None else shape.type

    @shows(DeliveryOptions, lambda: Queue.enqueue)
    def enqueue_file(
        self,
        path: str | os.PathLike[str],
        *,
        project: str | None = None,
        source_path: str | os.PathLike[str] | None = None,
        doc_date: str | date | None = None,
        **options: Unpack[DeliveryOptions],
    ) -> int:
        """Enqueue the text of a file, with its path, project and date.

        The content is read as UTF-8 now, so later changes of the file do not matter.

        - `source_path`: by default the resolved path.
        - `project`: by default the name of the enclosing git repository, else of the directory.
        - `doc_date`: by default the day the file was last changed.
        - Other options are those of `enqueue`.

        Raises FileNotFoundError if there is no such file, PayloadTooLargeError if it is larger than `max_bytes` (before
        it is read), and ValueError if it is not UTF-8. Then nothing is written.
        """
        found = document(path, self.options["max_bytes"])
        given = {"project": project, "source_path": source_path, "doc_date": doc_date}
        found |= {name: value for name, value in given.items() if value is not None}
        return self.enqueue(**found, **options)

    @overload
    def drain(
        self, handler: Handler[..., Any] | None = None, *, batch: None = None, **plan: Unpack[DrainOptions]
    ) -> DrainReport: ...
    @overload
    def drain(
        self, handler: Callable[[_native.Item[T]], object], *, batch: None = None, **plan: Unpack[DrainOptions]
    ) -> DrainReport: ...
    @overload
    def drain(
        self,
        handler: Callable[[list[_native.Item[T]]], object],
        *,
        batch: Literal["group"],
        **plan: Unpack[DrainOptions],
    ) -> DrainReport: ...
    @shows(DrainOptions, lambda: Plan)
    def drain(
        self, handler: Any = None, *, exclusive: bool = True, batch: Literal["group"] | None = None, **plan: Any
    ) -> DrainReport:
        """Claim and handle items until nothing is due, then return.

        - `handler`: called with each item. By default the function that was registered with `@queue.handler`.
        - `concurrency`: how many items are handled at once, each in a thread; a single one in the caller's thread.
        - `retry_failed`: first return failed items below their retry limit to pending.
        - `exclusive`: take the worker lease first. If another live worker holds it, return at once with `refused`. With
          False no lease is taken, and many processes may drain together.
        - `limit`: the maximum number of items to claim.
        - `linger`: stay while something becomes due within that time: a delayed item, a retry, a schedule's tick, a
          rate's slot; and while an item waits for one that is in progress.
        - `progress`: True for a bar on a terminal (plain lines without rich), or a callable that gets `LoopEvent`s.
        - `batch`: "group" calls the handler with a list: all pending items of one group, or one item without a group.
        - `grace`: seconds that running handlers have to finish after a stop.
        - `max_runtime`: how long a claim is renewed. By default it is renewed for as long as the handler runs.
        - `middleware`: a list of callables `(item, call_next)` around the handler.
        - `on_error`: called with `(exception, item, phase)`; the phases are claim, handler, finish and lost.

        What the handler returns becomes the result: a JSON value, or a value that typed content knows, such as a
        dataclass or a pydantic model, which is stored as JSON. The item of a handler that returns anything else is done
        without a result; `unstored` counts it. An exception fails the item, including a
        `BaseException` that is not an `Exception`, and the loop goes on; `RetryLater` and `GiveUp` choose what happens
        to the item. A native thread renews claims and lease.

        In the main thread, SIGINT and SIGTERM end the loop like `stop()`. Nothing more is claimed. Running handlers
        have `grace` seconds, then their items are released uncounted. The report has `stopped`. A second signal ends
        the loop at once, after releasing everything. KeyboardInterrupt raised by a handler releases its item uncounted
        and propagates. SystemExit propagates, too, but counts as a lost claim, so an item whose handler always exits
        ends as failed.

        If the store is busy or full, the loop tries again for some seconds. The end of an item is recorded as soon as
        other writers allow it, however long that takes. An item whose handler left a write transaction open fails with
        that reason.

        Outside the main thread, a single-slot loop returns only after its handler returns, even if the item was already
        released. While the interpreter exits (`atexit`), a drain works with one slot.
        """
        return self._loop(handler, planned("drain", DrainOptions, plan, exclusive=exclusive, batch=batch))

    @overload
    def work(
        self, handler: Handler[..., Any] | None = None, *, batch: None = None, **plan: Unpack[WorkOptions]
    ) -> DrainReport: ...
    @overload
    def work(
        self, handler: Callable[[_native.Item[T]], object], *, batch: None = None, **plan: Unpack[WorkOptions]
    ) -> DrainReport: ...
    @overload
    def work(
        self,
        handler: Callable[[list[_native.Item[T]]], object],
        *,
        batch: Literal["group"],
        **plan: Unpack[WorkOptions],
    ) -> DrainReport: ...
    @shows(WorkOptions, lambda: Plan)
    def work(self, handler: Any = None, *, batch: Literal["group"] | None = None, **plan: Any) -> DrainReport:
        """Claim and handle items until stopped by `stop()`, SIGTERM or SIGINT, sleeping while there is nothing to do.

        No worker lease is taken: any number of processes may work. A new item is handled about a millisecond after its
        commit, even if another process enqueued it. With `limit`, the loop ends after that number of items. Everything
        else is as in `drain`, but if the store is busy or full, the loop tries again for as long as it runs.
        """
        return self._loop(handler, planned("work", WorkOptions, plan, batch=batch, stays=True))

    def stop(self) -> None:
        """Stop the loops that run on this object. It may be called from another thread or from a handler."""
        for loop in tuple(self._loops):
            loop.stop()

    @overload
    def handler(self, function: Callable[Concatenate[_native.Item[Any], P], R], /) -> Handler[P, R]: ...
    @overload
    def handler(self, function: Callable[P, R], /) -> Handler[P, R]: ...
    @overload
    def handler(self, /, *, name: str | None = None, **options: Unpack[QueueOptions]) -> Register: ...
    @shows(QueueOptions, lambda: _native.Queue)
    def handler(self, function: Any = None, /, *, name: str | None = None, **options: Unpack[QueueOptions]) -> Any:
        """Make a typed function the handler of this queue: `@queue.handler`.

        Its arguments are the content, stored as a dict by their names. They are checked as typed content is, when they
        are enqueued and when they are handled. Enqueue with `function.enqueue(…)`, or with options
        `function.options(delay=30).enqueue(…)`. In a queue that has a type, the function takes one argument of that
        type. A first argument annotated `Item` gets the item itself and is not part of the content. Calling the
        function runs it directly.

        `drain()` and `work()` run it by default. A queue has one handler. `@queue.handler(name=…)` makes a function the
        handler of another queue in the same file, and `worker()` serves all of them. `options` are those of `Queue` for
        that other queue: it has its own settings, but shares `durability`, `busy_timeout` and `worker` by default.

        Raises TypeError for a function whose arguments cannot be content, and ValueError for a second handler.
        """
        if function is None:
            return functools.partial(self._register, name=name, options=options)
        return self._register(function, name, options)

    @shows(WorkOptions, lambda: Queue.work)
    def worker(self, **plan: Unpack[WorkOptions]) -> Worker:
        """Return a worker for all handlers that were registered here; `plan` is as in `work`."""
        if self.path is None:
            raise ValueError("an in-memory queue lives in this object alone; a worker needs a file")
        handlers = self._handlers.values()
        given: Any = {handler.queue.name: reopen_options(handler.queue) for handler in handlers}
        return Worker(
            self.path,
            {handler.queue.name: handler for handler in handlers},
            options=given,
            **plan,
        )

    def close(self) -> None:
        """Close this object, and the queues that were opened for its handlers.

        If a worker lease or a lock cannot be released, because writing fails, that is logged; it is no longer renewed.
        """
        for handler in self._handlers.values():
            if handler.queue is not self:
                handler.queue.close()
        close_queue(self)

    def spawn_worker(
        self,
        handler: str | Handler[..., Any],
        *,
        linger: float | timedelta = 300.0,
        concurrency: int = 1,
        retry_failed: bool = False,
    ) -> bool:
        """Start a detached worker unless one serves this queue or is starting. Return whether one was started.

        - `handler`: a registered handler, or the name of a function, `"package.module:function"`. `"package.module"`
          serves all handlers that are registered with the queues of that module, one of them for this queue. The
          worker must be able to import it, and the queue's type if it has one.
        - `linger`: the worker ends when nothing becomes due within this time, and no item of its queues waits for one
          that is in progress.
        - `concurrency`, `retry_failed`: as in `drain`.

        The worker is a process with its own session and with this object's settings. It writes to `<file>.worker.log`.
        Call this after enqueueing, or give `spawn=` to `enqueue`: a running worker checks for new items once more
        before it ends.
        """
        return spawn.spawn(self, handler, linger=linger, concurrency=concurrency, retry_failed=retry_failed)

    def _run_steps(self, connection: Any, steps: _native.Enlistment) -> Any:
        """Run a verb on the caller's connection. Every verb with `connection=` calls this."""
        return drive.run(connection, self.path, steps)

    def _storable(self, result: Any) -> Any:
        """Return the JSON value of a result that JSON cannot carry as it is. `mark_done` calls this."""
        from membox_queue.content.results import storable

        return storable(result)

    def _check_spawn(self, handler: str) -> None:
        """Refuse a worker that could not begin. `enqueue` and `enqueue_many` call this before they write."""
        names.check_spawn(self, handler)

    @functools.cached_property
    def _loops(self) -> set[Loop]:
        return set()

    @functools.cached_property
    def _handlers(self) -> Registry[Handler[..., Any]]:
        return Registry(self.name)

    def _register(self, function: Any, name: str | None, options: QueueOptions) -> Handler[..., Any]:
        from membox_queue.loops.handler import Handler

        name = self._handlers.name_for(name, options)
        if name == self.name:
            handler: Handler[..., Any] = Handler(self, function)
        else:
            given: Any = {**inherited(reopen_options(self)), **options}
            queue: Queue[Any] = Queue(":memory:" if self.path is None else self.path, name, **given)
            try:
                handler = Handler(queue, function)
            except BaseException:
                queue.close()
                raise
            queue._handlers[name] = handler
        self._handlers[name] = handler
        return handler

    def _loop(self, handler: Any, plan: Plan) -> DrainReport:
        loop = Loop([self], [self._handlers.own_handler() if handler is None else handler], possible_now(plan))
        self._loops.add(loop)
        try:
            return run(loop)
        finally:
            self._loops.discard(loop)

    def coverage_note(self, noun: str = "ingest", plural: str | None = None) -> str | None:
        """Return a sentence with the number of unfinished items, to show below search results; None if there are none.

        Blocked items count, and so do those that were enqueued here and are in another queue now.

        - `noun`: what an item is called, such as "order".
        - `plural`: the noun for several items. By default the noun with an s.
        """
        count = self._uncovered()
        if count == 0:
            return None
        called = noun if count == 1 else plural or f"{noun}s"
        return f"{count} {called} pending — results may be incomplete"

    def __iter__(self) -> Generator[_native.Item[T], Any, None]:
        """Claim forever. Each item is renewed until `with item:` ends it, and released if nothing did."""
        return claimed_items(self)

    # Otherwise `in` would claim and release forever.
    __contains__ = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: builtins.type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Queue[Any]], tuple[Any, ...]]:
        if self.path is None:
            raise TypeError("an in-memory queue lives in one process and cannot be pickled; use a file")
        options = reopen_options(self) if self.type is None else {**reopen_options(self), "type": self.type}
        return _reopen, (self.__class__, str(self.path), self.name, options)

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return f"<Queue {self.name!r} in {str(self.path or ':memory:')!r}{state}>"


_native.set_transaction(block.Transaction)


def new_key(prefix: str) -> str:
    """Return a new unique key that people can read: `discord_1f0c…`."""
    if not prefix or not isinstance(prefix, str):
        raise ValueError("new_key takes a prefix, such as the channel a message came from")
    return f"{prefix}_{secrets.token_hex(8)}"


def _reopen(cls: type[Queue[Any]], path: str, name: str, options: dict[str, Any]) -> Queue[Any]:
    """Unpickle a queue: open the same file with the same options."""
    return cls(path, name, **options)


def handlers_of(queue: Queue[Any]) -> list[Handler[..., Any]]:
    """The handlers that are registered for a queue."""
    return list(queue._handlers.values())
