"""AsyncQueue: the verbs of `Queue`, each awaited, in threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from membox_queue import _native
from membox_queue.aio.item import AsyncItem, plain
from membox_queue.aio.lock import AsyncLock
from membox_queue.aio.loop import Loop
from membox_queue.aio.waiting import outlast, settled
from membox_queue.drain import DrainReport, Plan, Shift
from membox_queue.errors import QueueClosedError, QueueError
from membox_queue.queue import Opening, Queue, inherited, shape_of, type_in_brackets

if TYPE_CHECKING:
    import builtins
    import types
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
    from types import TracebackType
    from typing import Literal, Self, Unpack

    from typing_extensions import TypeVar as TypeVarWithDefault

    from membox_queue.handler import AsyncHandler, AsyncRegister
    from membox_queue.options import EnqueueOptions, QueueOptions, Seconds

    C = TypeVarWithDefault("C", default=Any)
    AsyncItemHandler = (
        Callable[["AsyncItem[C]"], Awaitable[object]]
        | Callable[[list["AsyncItem[C]"]], Awaitable[object]]
        | Callable[[_native.Item[C]], object]
        | Callable[[list[_native.Item[C]]], object]
        | AsyncHandler[..., Any]
    )
else:
    C = TypeVar("C")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

THREADS = 32
"""Verbs of one queue that may be under way at once."""
WAITS = 4096
"""Waits of one queue that may be under way at once."""


def verb(
    method: Callable[Concatenate[Queue[Any], P], T],
) -> Callable[Concatenate[AsyncQueue[Any], P], Coroutine[Any, Any, T]]:
    """Turn a verb of `Queue` into one that is awaited."""

    @functools.wraps(method)
    async def awaited(self: AsyncQueue[Any], /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._call(method, *arguments, **options)

    return awaited


def ending(
    method: Callable[Concatenate[Queue[Any], _native.Item[Any], P], T],
) -> Callable[Concatenate[AsyncQueue[Any], AsyncItem[Any] | _native.Item[Any], P], Coroutine[Any, Any, T]]:
    """The same for a verb about a claimed item."""
    awaited: Any = verb(method)
    return awaited  # type: ignore[no-any-return]


class AsyncQueue(Generic[C]):
    """A `Queue` for asyncio: the same arguments, the same verbs, each awaited.

    Nothing touches the file before the first await. The event loop is never blocked by SQLite, and no signal handler is
    installed. Cancelling a wait or a loop gives its items back before `CancelledError` leaves.
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
    def __init__(
        self, path: str | os.PathLike[str], name: str = "ingest", *, type: Any = None, **options: Unpack[QueueOptions]
    ) -> None:
        type = type_in_brackets(self.__class__) if type is None else type
        self._shape = shape_of(type)
        self._path = path
        self._options = options
        self.name = name
        self._open: Callable[[], Queue[C]] = functools.partial(Queue, path, name, type=type, **options)
        self._queue: Queue[C] | None = None
        self._handlers: dict[str, AsyncHandler[..., Any]] = {}
        self._opening = asyncio.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="membox-queue-async")
        # Those who wait do not keep the others from their turn.
        self._waits = ThreadPoolExecutor(WAITS, thread_name_prefix="membox-queue-wait")
        self._loops: set[Loop] = set()
        self._is_closed = False

    if not TYPE_CHECKING:

        def __class_getitem__(cls, type: Any) -> Any:
            """`AsyncQueue[Doc]`: called, it makes a queue of that type."""
            return Opening(cls, type)

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

    async def is_paused(self) -> bool:
        """Whether the queue is paused, asked of the file."""
        return bool(await self._call(getattr, "paused"))

    mark_failed = ending(Queue.mark_failed)
    mark_done = ending(Queue.mark_done)
    release = ending(Queue.release)
    extend = ending(Queue.extend)
    retry_failed = verb(Queue.retry_failed)
    retry = verb(Queue.retry)
    replay = verb(Queue.replay)
    run_now = verb(Queue.run_now)
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

    async def enqueue(self, content: C, **options: Unpack[EnqueueOptions]) -> int:
        """Add one item and return its id; the options are those of `Queue.enqueue`."""
        return await self._call(Queue.enqueue, content, **options)

    async def enqueue_many(
        self, items: Iterable[C | _native.NewItem[C]], *, wait: Seconds = 0.0, spawn: str | None = None
    ) -> list[int]:
        """Add all items or none, in one transaction; return their ids."""
        return await self._call(Queue.enqueue_many, items, wait=wait, spawn=spawn)

    async def get(self, id: int | None = None, *, key: str | None = None) -> _native.Item[C] | None:
        """One item of this queue, by its id or its key."""
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
    ) -> list[_native.Item[C]]:
        """A page of items in the order of their ids."""
        return await self._call(
            Queue.items, status, project=project, group=group, limit=limit, after=after, newest_first=newest_first
        )

    async def failures(self, limit: int = 5) -> list[_native.Item[C]]:
        """The latest failed items, newest first."""
        return await self._call(Queue.failures, limit)

    async def enqueue_file(self, path: str | os.PathLike[str], **options: Any) -> int:
        """Enqueue the text of a file; see `Queue.enqueue_file`."""
        return await self._call(Queue.enqueue_file, path, **options)

    async def configure(self, **settings: Any) -> None:
        """Store settings in the file; see `Queue.configure`."""
        await self._call(Queue.configure, **settings)

    async def mark_done_many(self, items: Iterable[AsyncItem[Any] | _native.Item[Any]]) -> int:
        """Mark claimed items done in one transaction; say how many took effect."""
        return await self._call(Queue.mark_done_many, [plain(item) for item in items])

    async def claim(
        self, *, wait: float = 0.0, lease: float | None = None, group: str | None = None, worker: str | None = None
    ) -> AsyncItem[C] | None:
        """Take the next item; None when nothing is due. With `wait`, waits up to that long for one."""
        items = await self._claim(1, "queue", wait, lease, group, worker)
        return items[0] if items else None

    async def claim_many(
        self,
        limit: int,
        *,
        wait: float = 0.0,
        lease: float | None = None,
        group: str | None = None,
        worker: str | None = None,
    ) -> list[AsyncItem[C]]:
        """Take up to `limit` items in one transaction."""
        return await self._claim(limit, "queue", wait, lease, group, worker)

    async def claim_group(
        self, *, wait: float = 0.0, lease: float | None = None, worker: str | None = None
    ) -> list[AsyncItem[C]]:
        """Take everything pending of one group of which nothing is in work, in order."""
        return await self._claim(1, "group", wait, lease, None, worker)

    def lock(self, name: str, *, ttl: float = 30.0, wait: float = 0.0) -> AsyncLock:
        """A lock of the whole file by its name: `async with queue.lock("nightly"): …`."""
        return AsyncLock(self, name, ttl, wait)

    async def wait(self, id: int, timeout: float | None = None) -> _native.Item[C]:
        """Wait for an item to end, and return it. Raises TimeoutError."""
        token = _native.Token()
        return await self._interruptible(token, Queue._wait_for, id, timeout, token)

    async def __aiter__(self) -> AsyncIterator[AsyncItem[C]]:
        """Claim for ever; each item is renewed until `async with item:` ends it, and given back if nothing did."""
        while True:
            item = await self.claim(wait=math.inf)
            if item is None:
                continue
            try:
                await item._keep()
                yield item
            finally:
                if not item._item._settled:
                    await outlast(self._run_in_thread(give_back, await self._opened(), [item._item]))

    @property
    def type(self) -> Any:
        """The type of the content; None if there is none."""
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
    def handler(self, function: Any = None, /, *, name: str | None = None, **options: Unpack[QueueOptions]) -> Any:
        """Make a typed function, to be awaited or not, the handler of this queue; see `Queue.handler`.

        Its `enqueue` is awaited. A coroutine function may ask for the item with a first argument annotated `AsyncItem`.
        """
        if function is None:
            return functools.partial(self._register, name=name, options=options)
        return self._register(function, name, options)

    def _register(self, function: Any, name: str | None, options: QueueOptions) -> AsyncHandler[..., Any]:
        if options and name in (None, self.name):
            raise TypeError("options are for a queue of the handler's own; give it a name of its own")
        name = self.name if name is None else name
        if name in self._handlers:
            raise ValueError(f"the queue {name!r} has a handler already: {self._handlers[name].__name__}")
        from membox_queue.handler import AsyncHandler

        queue: AsyncQueue[Any] = self
        if name != self.name:
            given: Any = {**inherited(self._options), **options}
            queue = AsyncQueue(self._path, name, **given)
        self._handlers[name] = queue._handlers[name] = AsyncHandler(queue, function)
        return self._handlers[name]

    async def drain(self, handler: AsyncItemHandler[C] | None = None, **plan: Any) -> DrainReport:
        """Claim and handle until nothing is due; the arguments are those of `Queue.drain`.

        A coroutine function is awaited in the event loop, `concurrency` at a time; a plain one runs in a thread.
        """
        return await self._loop(handler, Plan(**{"exclusive": True, **plan}))

    async def work(self, handler: AsyncItemHandler[C] | None = None, **plan: Any) -> DrainReport:
        """Claim and handle until `stop()` or cancellation; the arguments are those of `Queue.work`."""
        return await self._loop(handler, Plan(stays=True, **plan))

    def stop(self) -> None:
        """End the loops that run on this object: nothing more is claimed, what runs has the grace to end."""
        for loop in tuple(self._loops):
            loop.stop()

    async def close(self) -> None:
        """End this object's use of the file. Closing twice is closing once."""
        if self._is_closed:
            return
        self._is_closed = True
        for handler in self._handlers.values():
            await handler.queue.close()
        if self._queue is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._queue.close)
        self._threads.shutdown(wait=False)
        self._waits.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: builtins.type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _opened(self) -> Queue[C]:
        if self._queue is None:
            async with self._opening:
                if self._queue is None:
                    self._queue = await self._run_in_thread(self._open)
        return self._queue

    async def _call(self, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        queue = await self._opened()
        given = [plain(argument) for argument in arguments]
        named = {name: plain(value) for name, value in options.items()}
        return await self._run_in_thread(functools.partial(method, queue, *given, **named))

    async def _run_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call something short; when we are cancelled meanwhile, what it does is done before that is told."""
        return await settled(self._submit(self._threads, function, *arguments))

    def _submit(self, threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        if self._is_closed:
            raise QueueClosedError("this queue is closed; open a new AsyncQueue to go on")
        return asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    async def _claim(
        self, limit: int, kind: str, wait: float, lease: float | None, group: str | None, worker: str | None
    ) -> list[AsyncItem[C]]:
        queue = await self._opened()
        token = _native.Token()
        claim = functools.partial(queue._claim, limit, kind, wait, lease, group, worker, token)
        claiming = self._submit(self._waits if wait else self._threads, claim)
        try:
            items = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            token.cancel()
            with contextlib.suppress(QueueError):
                if items := await outlast(claiming):
                    await outlast(self._run_in_thread(give_back, queue, items))
            raise
        return [AsyncItem(item, self._run_in_thread) for item in items]

    async def _interruptible(self, token: _native.Token, method: Callable[..., T], *arguments: Any) -> T:
        """Call something that may take long and can be ended by its token."""
        queue = await self._opened()
        waiting = self._submit(self._waits, functools.partial(method, queue, *arguments))
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            token.cancel()
            with contextlib.suppress(QueueError, TimeoutError):
                await outlast(waiting)
            raise

    async def _loop(self, handler: Any, plan: Plan) -> DrainReport:
        if handler is None and self.name not in self._handlers:
            raise TypeError(f"the queue {self.name!r} has no handler; give one, or register it with @queue.handler")
        handler = self._handlers[self.name] if handler is None else handler
        shift = Shift([await self._opened()], [handler], plan)
        loop = Loop(shift, self._run_in_thread)
        self._loops.add(loop)
        try:
            return await loop.run()
        finally:
            self._loops.discard(loop)


def give_back(queue: Queue[Any], items: list[_native.Item[Any]]) -> None:
    """Release items uncounted; the last of a batch first, so that each goes by itself."""
    for item in reversed(items):
        queue.release(item)
