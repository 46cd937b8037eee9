"""AsyncQueue: the verbs of `Queue`, each awaited; SQLite runs in threads.

Above 400 lines because type checkers need the overloads of its verbs in one class.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from membox_queue import _native
from membox_queue.aio.calls import Calls, ending, verb
from membox_queue.aio.item import AsyncItem, plain
from membox_queue.aio.iterate import ItemIterator
from membox_queue.aio.lock import AsyncLock
from membox_queue.aio.tasks import TaskDriver
from membox_queue.aio.threads import result_despite_cancellation
from membox_queue.aio.waits import OVER
from membox_queue.content.generic import TypedAlias, shape_of, type_of_class
from membox_queue.loops.plan import planned
from membox_queue.loops.registry import Registry
from membox_queue.opening import resolved
from membox_queue.options import (
    DrainOptions,
    EnqueueOptions,
    QueueOptions,
    QueueSettings,
    SkipOptions,
    WorkOptions,
    inherited,
)
from membox_queue.queue import Queue
from membox_queue.signatures import shows

if TYPE_CHECKING:
    import builtins
    import types
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
    from types import TracebackType
    from typing import Literal, Self, Unpack

    from typing_extensions import TypeVar as TypeVarWithDefault

    from membox_queue.loops.handler import AsyncHandler, AsyncRegister
    from membox_queue.loops.plan import Plan
    from membox_queue.loops.report import DrainReport
    from membox_queue.options import Seconds

    C = TypeVarWithDefault("C", default=Any)
    HandlerOfOne = (
        Callable[["AsyncItem[C]"], Awaitable[object]] | Callable[[_native.Item[C]], object] | AsyncHandler[..., Any]
    )
    HandlerOfGroup = Callable[[list["AsyncItem[C]"]], Awaitable[object]] | Callable[[list[_native.Item[C]]], object]
else:
    C = TypeVar("C")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AsyncQueue(Calls[C], Generic[C]):
    """A `Queue` for asyncio: the same arguments, the same verbs, each awaited.

    The file is opened at the first await. SQLite never blocks the event loop, and no signal handler is installed.
    Cancelling a wait or a loop releases its items before `CancelledError` is raised.
    """

    @overload
    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        type: builtins.type[C],
        **options: Unpack[QueueOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "ingest",
        *,
        type: types.UnionType | None = None,
        **options: Unpack[QueueOptions],
    ) -> None: ...
    @shows(QueueOptions, lambda: _native.Queue)
    def __init__(
        self, path: str | os.PathLike[str], name: str = "ingest", *, type: Any = None, **options: Unpack[QueueOptions]
    ) -> None:
        type = type_of_class(self.__class__) if type is None else type
        self._shape = shape_of(type)
        # As `Queue` does: the working directory may change before the first await.
        self._path = path = resolved(path)
        self._options = options
        self.name = name
        self._handlers: Registry[AsyncHandler[..., Any]] = Registry(name)
        self._stops = 0
        super().__init__(functools.partial(Queue, path, name, type=type, **options))

    if not TYPE_CHECKING:

        def __class_getitem__(cls, type: Any) -> Any:
            """`AsyncQueue[Doc]`: called, it makes a queue of that type."""
            return TypedAlias(cls, type)

    @property
    def path(self) -> Path | None:
        """The file, resolved; None for a queue in memory."""
        return None if os.fspath(self._path) == ":memory:" else Path(self._path).resolve()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def _given(self) -> dict[str, Any]:
        return dict(self._options)

    @property
    def _reopen_options(self) -> dict[str, Any]:
        return self._given if self._queue is None else self._queue._reopen_options

    async def is_paused(self) -> bool:
        """Return whether the queue is paused, read from the file."""
        return bool(await self._call(getattr, "paused"))

    mark_failed = ending(Queue.mark_failed)
    mark_done = ending(Queue.mark_done)
    release = ending(Queue.release)
    answer = verb(Queue.answer)
    tree = verb(Queue.tree)
    extend = ending(Queue.extend)
    retry_failed = verb(Queue.retry_failed)
    retry = verb(Queue.retry)
    retry_all = verb(Queue.retry_all)
    replay = verb(Queue.replay)
    run_now = verb(Queue.run_now)
    run_later = verb(Queue.run_later)
    cancel = verb(Queue.cancel)
    delete = verb(Queue.delete)
    purge = verb(Queue.purge)
    prune = verb(Queue.prune)
    compact = verb(Queue.compact)
    backup = verb(Queue.backup)
    check = verb(Queue.check)
    queues = verb(Queue.queues)
    tend = verb(Queue.tend)
    counts = verb(Queue.counts)
    group_counts = verb(Queue.group_counts)
    pending = verb(Queue.pending)
    running = verb(Queue.running)
    history = verb(Queue.history)
    stats = verb(Queue.stats)
    workers = verb(Queue.workers)
    coverage_note = verb(Queue.coverage_note)
    pause = verb(Queue.pause)
    resume = verb(Queue.resume)
    schedule = verb(Queue.schedule)
    schedules = verb(Queue.schedules)
    unschedule = verb(Queue.unschedule)
    spawn_worker = verb(Queue.spawn_worker)
    acquire_worker_lease = verb(Queue.acquire_worker_lease)
    refresh_worker_lease = verb(Queue.refresh_worker_lease)
    release_worker_lease = verb(Queue.release_worker_lease)
    worker_is_alive = verb(Queue.worker_is_alive)

    @overload
    async def enqueue(self, content: C, **options: Unpack[EnqueueOptions]) -> int: ...
    @overload
    async def enqueue(
        self, content: C, *, on_duplicate: Literal["skip"], **options: Unpack[SkipOptions]
    ) -> int | None: ...
    @shows(EnqueueOptions, lambda: Queue.enqueue)
    async def enqueue(self, content: C, **options: Any) -> int | None:
        """Add one item and return its id; the options are those of `Queue.enqueue`.

        `connection` may be an AsyncConnection or AsyncSession of SQLAlchemy, or a connection of aiosqlite, too, as for
        every verb that takes one.
        """
        return await self._put(1, Queue.enqueue, content, **options)

    async def enqueue_many(
        self,
        items: Iterable[C | _native.NewItem[C]],
        *,
        connection: Any = None,
        wait: Seconds = 0.0,
        spawn: str | None = None,
    ) -> list[int | Any]:
        """Add all items or none, in one transaction; return their ids. See `Queue.enqueue_many`."""
        if not wait or connection is not None:
            return await self._call(Queue.enqueue_many, items, connection=connection, wait=wait, spawn=spawn)
        # Values that are not an iterable of contents are refused by `enqueue_many` itself.
        given: Any = (
            items if isinstance(items, str | bytes | bytearray | dict) else await self._run_in_thread(list, items)
        )
        return await self._put(len(given), Queue.enqueue_many, given, wait=wait, spawn=spawn)

    async def get(self, id: int | None = None, *, key: str | None = None) -> _native.Item[C] | None:
        """Return one item of this queue, by its id or its key."""
        return await self._call(Queue.get, id, key=key)

    async def items(
        self,
        status: Literal["pending", "processing", "done", "failed", "blocked", "cancelled"] | None = None,
        *,
        project: str | None = None,
        group: str | None = None,
        limit: int = 50,
        after: int | None = None,
        newest_first: bool = False,
        home: bool = False,
    ) -> list[_native.Item[C]]:
        """Return a page of items in the order of their ids."""
        page = {"limit": limit, "after": after, "newest_first": newest_first}
        return await self._call(Queue.items, status, project=project, group=group, home=home, **page)

    async def failures(self, limit: int = 5) -> list[_native.Item[C]]:
        """Return the latest failed items, newest first."""
        return await self._call(Queue.failures, limit)

    @shows(EnqueueOptions, lambda: Queue.enqueue)
    async def enqueue_file(self, path: str | os.PathLike[str], **options: Unpack[EnqueueOptions]) -> int:
        """Enqueue the text of a file; see `Queue.enqueue_file`."""
        return await self._put(1, Queue.enqueue_file, path, **options)

    @shows(QueueSettings, lambda: Queue.configure)
    async def configure(self, **settings: Unpack[QueueSettings]) -> None:
        """Store settings in the file; see `Queue.configure`."""
        await self._call(Queue.configure, **settings)

    async def mark_done_many(self, items: Iterable[AsyncItem[Any] | _native.Item[Any]]) -> int:
        """Mark claimed items done in one transaction. Return how many took effect."""
        return await self._call(Queue.mark_done_many, [plain(item) for item in items])

    async def claim(
        self, *, wait: Seconds = 0.0, lease: Seconds | None = None, group: str | None = None, worker: str | None = None
    ) -> AsyncItem[C] | None:
        """Claim the next item; None if nothing is due. With `wait`, wait up to that long for one."""
        items = await self._claim(1, "queue", wait, lease, group, worker)
        return items[0] if items else None

    async def claim_many(
        self,
        limit: int,
        *,
        wait: Seconds = 0.0,
        lease: Seconds | None = None,
        group: str | None = None,
        worker: str | None = None,
    ) -> list[AsyncItem[C]]:
        """Claim up to `limit` items in one transaction."""
        return await self._claim(limit, "queue", wait, lease, group, worker)

    async def claim_group(
        self,
        group: str | None = None,
        *,
        limit: int | None = None,
        wait: Seconds = 0.0,
        lease: Seconds | None = None,
        worker: str | None = None,
    ) -> list[AsyncItem[C]]:
        """Claim all pending items, or the first `limit`, of one group, or a single item; see `Queue.claim_group`."""
        return await self._claim(limit, "group", wait, lease, group, worker)

    def lock(self, name: str, *, ttl: Seconds = 30.0, wait: Seconds = 0.0) -> AsyncLock:
        """Return a named lock of the file: `async with queue.lock("nightly"): …`."""
        return AsyncLock(self, name, ttl, wait)

    async def wait(
        self, id: int | None = None, timeout: Seconds | None = None, *, key: str | None = None
    ) -> _native.Item[C] | Any:
        """Wait for an item to end, and return it; None if it was removed before. Raises TimeoutError."""
        queue = await self._opened()
        id = await self._look(queue._find, id, key) if key is not None else queue._find(id, None)
        limit = math.inf if timeout is None else queue._seconds("timeout", timeout)
        deadline = asyncio.get_running_loop().time() + limit
        awaited = queue._await_end()
        while True:
            item, was_looked_at = await self._waits(queue).ended(queue, id, deadline)
            is_over = item is OVER
            if item is not None and not is_over:
                return cast("_native.Item[C]", item)
            if not (is_over and was_looked_at) and (end := await self._look(queue._ended, id)) is not None:
                del awaited
                return end[1]
            if is_over:
                raise TimeoutError(f"item {id} has not ended within {limit:g} s")

    def __aiter__(self) -> ItemIterator[C]:
        """Claim forever. Each item is renewed until `async with item:` ends it, and released if nothing did."""
        return ItemIterator(self)

    @property
    def type(self) -> Any:
        """The type of the content; None if the queue has no type."""
        return None if self._shape is None else self._shape.type

    @overload
    def handler(
        self, function: Callable[Concatenate[AsyncItem[Any], P], Coroutine[Any, Any, R]], /
    ) -> AsyncHandler[P, Coroutine[Any, Any, R]]: ...
    @overload
    def handler(self, function: Callable[Concatenate[_native.Item[Any], P], R], /) -> AsyncHandler[P, R]: ...
    @overload
    def handler(self, function: Callable[P, R], /) -> AsyncHandler[P, R]: ...
    @overload
    def handler(self, /, *, name: str | None = None, **options: Unpack[QueueOptions]) -> AsyncRegister: ...
    @shows(QueueOptions, lambda: _native.Queue)
    def handler(self, function: Any = None, /, *, name: str | None = None, **options: Unpack[QueueOptions]) -> Any:
        """Make a typed function, plain or a coroutine function, the handler of this queue; see `Queue.handler`.

        Its `enqueue` is awaited. A coroutine function may ask for the item with a first argument annotated `AsyncItem`.
        """
        if function is None:
            return functools.partial(self._register, name=name, options=options)
        return self._register(function, name, options)

    def _register(self, function: Any, name: str | None, options: QueueOptions) -> AsyncHandler[..., Any]:
        from membox_queue.loops.handler import AsyncHandler

        name = self._handlers.name_for(name, options)
        queue: AsyncQueue[Any] = self
        if name != self.name:
            given: Any = {**inherited(self._options), **options}
            queue = AsyncQueue(self._path, name, **given)
        self._handlers[name] = queue._handlers[name] = AsyncHandler(queue, function)
        return self._handlers[name]

    @overload
    async def drain(
        self,
        handler: HandlerOfOne[C] | None = None,
        *,
        batch: None = None,
        cancel_running: bool = True,
        **plan: Unpack[DrainOptions],
    ) -> DrainReport: ...
    @overload
    async def drain(
        self,
        handler: HandlerOfGroup[C],
        *,
        batch: Literal["group"],
        cancel_running: bool = True,
        **plan: Unpack[DrainOptions],
    ) -> DrainReport: ...
    @shows(DrainOptions, lambda: Queue.drain)
    def drain(
        self,
        handler: Any = None,
        *,
        batch: Literal["group"] | None = None,
        cancel_running: bool = True,
        **plan: Unpack[DrainOptions],
    ) -> Coroutine[Any, Any, DrainReport]:
        """Claim and handle until nothing is due; the arguments are those of `Queue.drain`, and one more.

        - `cancel_running`: cancel the task of a handler within a second after its item was cancelled, or its claim was
          lost, in any process. The item ends as cancelled or lost. A handler that catches CancelledError and goes on is
          not cancelled again. With `batch`, the task is cancelled once none of its items is left.

        A coroutine function is awaited in the event loop, `concurrency` at a time, each call in a task of its own. A
        plain function runs in a thread, and is not cancelled. Both see the context variables of the caller of `drain`.
        """
        plan = {"exclusive": True, **plan}
        planning = planned("drain", DrainOptions, plan, batch=batch, cancel_running=cancel_running)
        return self._loop(handler, planning, self._stops)

    @overload
    async def work(
        self,
        handler: HandlerOfOne[C] | None = None,
        *,
        batch: None = None,
        cancel_running: bool = True,
        **plan: Unpack[WorkOptions],
    ) -> DrainReport: ...
    @overload
    async def work(
        self,
        handler: HandlerOfGroup[C],
        *,
        batch: Literal["group"],
        cancel_running: bool = True,
        **plan: Unpack[WorkOptions],
    ) -> DrainReport: ...
    @shows(WorkOptions, lambda: Queue.work)
    def work(
        self,
        handler: Any = None,
        *,
        batch: Literal["group"] | None = None,
        cancel_running: bool = True,
        **plan: Unpack[WorkOptions],
    ) -> Coroutine[Any, Any, DrainReport]:
        """Claim and handle until `stop()` or cancellation; the arguments are those of `Queue.work`.

        `cancel_running` is that of `drain`.
        """
        planning = planned("work", WorkOptions, plan, batch=batch, stays=True, cancel_running=cancel_running)
        return self._loop(handler, planning, self._stops)

    def stop(self) -> None:
        """Stop the loops that run on this object: they claim no more, and running handlers have the grace period.

        That includes a loop whose task has not started yet.
        """
        self._stops += 1
        for loop in tuple(self._loops):
            loop.stop()

    async def close(self) -> None:
        """Close this object. Closing it twice is allowed.

        Loops that still run on it end at once, without a grace period, after their items are released.
        """
        if self._is_closed:
            return
        self._begin_in_child()
        loops = tuple(self._loops)
        for loop in loops:
            loop.end_now()
        for loop in loops:
            await loop.wait_ended()
        await self._abandoned.released()
        self._is_closed = True
        for handler in self._handlers.values():
            await handler.queue.close()
        if self._queue is not None:
            await result_despite_cancellation(
                asyncio.get_running_loop().run_in_executor(self._threads, self._queue.close)
            )
        if self._shared_waits is not None:
            # The watcher closes its descriptors of the file.
            await result_despite_cancellation(
                asyncio.get_running_loop().run_in_executor(self._threads, self._shared_waits.watcher.close_if_idle)
            )
        self._threads.shutdown(wait=False)
        self._looks.shutdown(wait=False)
        self._lock_waits.close()

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: builtins.type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __reduce__(self) -> tuple[Callable[[], AsyncQueue[Any]], tuple[()]]:
        if self.path is None:
            raise TypeError("an in-memory queue lives in one process and cannot be pickled; use a file")
        opened = functools.partial(self.__class__, self.path, self.name, **self._reopen_options)
        return (opened if self.type is None else functools.partial(opened, type=self.type)), ()

    def __repr__(self) -> str:
        state = " (closed)" if self._is_closed else ""
        return f"<AsyncQueue {self.name!r} in {os.fspath(self._path)!r}{state}>"

    async def _loop(
        self, handler: Any, plan: Plan, stops: int, others: Sequence[tuple[Queue[Any], Any]] = ()
    ) -> DrainReport:
        """Run a loop over this queue and others of its file, each with its handler.

        `stops` is how often the queue had been stopped when the loop was requested.
        """
        handler = self._handlers.own_handler() if handler is None else handler
        queues = [await self._opened(), *(queue for queue, _ in others)]
        loop = TaskDriver(queues, [handler, *(other for _, other in others)], plan, self._run_in_thread)
        self._loops.add(loop)
        if self._stops != stops:
            loop.stop()
        try:
            return await loop.run()
        finally:
            self._loops.discard(loop)
            loop.end()
