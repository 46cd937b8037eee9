"""How `AsyncQueue` calls a `Queue`: in threads, with cancellation, and in line where a verb waits."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from membox_queue import _native
from membox_queue.aio import waits
from membox_queue.aio.item import AsyncItem, plain
from membox_queue.aio.iterate import Abandoned
from membox_queue.aio.threads import Threads, result_despite_cancellation, through_cancellation
from membox_queue.aio.waits import Ticket
from membox_queue.connections import asynchronous
from membox_queue.errors import QueueClosedError, QueueError, QueueFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from typing_extensions import TypeVar as TypeVarWithDefault

    from membox_queue.aio.tasks import TaskDriver
    from membox_queue.aio.waits import Waits
    from membox_queue.options import Seconds
    from membox_queue.queue import Queue

    C = TypeVarWithDefault("C", default=Any)
else:
    C = TypeVar("C")

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 32
"""How many verbs of one queue may run at once, not counting waits."""

LOOKS = 4
"""How many waits of one queue may read the file at once, when it is their turn."""


def verb(
    method: Callable[Concatenate[Queue[Any], P], T],
) -> Callable[Concatenate[Calls[Any], P], Coroutine[Any, Any, T]]:
    """Turn a verb of `Queue` into one that is awaited."""

    @functools.wraps(method)
    async def awaited(self: Calls[Any], /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self._call(method, *arguments, **options)

    return awaited


def ending(
    method: Callable[Concatenate[Queue[Any], _native.Item[Any], P], T],
) -> Callable[Concatenate[Calls[Any], AsyncItem[Any] | _native.Item[Any], P], Coroutine[Any, Any, T]]:
    """Do the same for a verb that ends or extends a claim: it is completed even if the task is cancelled."""

    @functools.wraps(method)
    async def awaited(
        self: Calls[Any], item: AsyncItem[Any] | _native.Item[Any], /, *arguments: P.args, **options: P.kwargs
    ) -> T:
        queue = await self._opened()
        call: Any = functools.partial(method, queue, plain(item), *arguments, **options)
        if (on_connection := asynchronous.caller(options.get("connection"))) is not None:
            result: T = await on_connection(lambda own: call(connection=own))
            return result
        return await self._run_in_thread(call)

    return awaited


class Calls(Generic[C]):
    """The calls of one `AsyncQueue`: its threads, its waits, and the `Queue` that is opened at the first await."""

    def __init__(self, open: Callable[[], Queue[C]]) -> None:
        self._open = open
        self._queue: Queue[C] | None = None
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        """Make what belongs to one process; a forked child begins anew."""
        self._process = os.getpid()
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="membox-queue-async")
        # Waits have threads of their own, so that they do not delay other verbs.
        self._looks = ThreadPoolExecutor(LOOKS, thread_name_prefix="membox-queue-look")
        self._shared_waits: Waits | None = None
        self._lock_waits = Threads("membox-queue-lock")
        self._loops: set[TaskDriver] = set()
        self._abandoned = Abandoned(self._threads)

    async def _opened(self) -> Queue[C]:
        self._begin_in_child()
        if self._abandoned:
            # Before anything else: items of an abandoned loop are released.
            await self._abandoned.released()
        if self._queue is None:
            await self._run_in_thread(self._open_once)
        assert self._queue is not None
        return self._queue

    def _open_once(self) -> None:
        """In a thread: event loops of several threads may come at once."""
        with self._opening:
            if self._queue is None:
                self._queue = self._open()

    async def _call(self, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a verb. One that is cancelled while it waits for other writers, or for room, changes nothing."""
        queue = await self._opened()
        given = [plain(argument) for argument in arguments]
        named = {name: plain(value) for name, value in options.items()}
        call = functools.partial(method, queue, *given, **named)
        if (on_connection := asynchronous.caller(named.get("connection"))) is not None:
            # The library runs this where its driver waits; no thread of ours is involved.
            result: T = await on_connection(lambda own: call(connection=own))
            return result
        return await self._interruptible(_native.Token(), call)

    async def _put(self, count: int, method: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Enqueue `count` items; if the queue is full, wait in line for room for as long as `wait` says."""
        wait = options.get("wait")
        if not wait or options.get("connection") is not None:
            return await self._call(method, *arguments, **options)
        queue = await self._opened()
        clock = asyncio.get_running_loop().time
        deadline = clock() + queue._seconds("wait", wait)
        del options["wait"]
        with Ticket(self._waits(queue)) as ticket:
            has_turn = ticket.waits.watcher.join_line_for_room(ticket.number, queue, count)
            while has_turn or await ticket.turn(deadline):
                has_turn = False
                try:
                    return await self._call(method, *arguments, **options)
                except QueueFullError:
                    if clock() >= deadline:
                        raise
        return await self._call(method, *arguments, **options)

    async def _run_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call something short. If the task is cancelled meanwhile, the call is completed first."""
        return await result_despite_cancellation(self._submit(self._threads, function, *arguments))

    async def _look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Read the file for a waiting task, in threads that other verbs do not use."""
        return await result_despite_cancellation(self._submit(self._looks, function, *arguments))

    def _submit(self, threads: ThreadPoolExecutor, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        self._check_is_open()
        return asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    def _check_is_open(self) -> None:
        if self._is_closed:
            raise QueueClosedError("this queue is closed; open a new AsyncQueue to go on")
        self._begin_in_child()

    def _waits(self, queue: Queue[C]) -> Waits:
        """Return the waits that all queues of the file share."""
        self._check_is_open()
        if self._shared_waits is None:
            self._shared_waits = waits.of(queue)
        return self._shared_waits

    def _begin_in_child(self) -> None:
        """Begin anew in a forked child, which has none of its parent's threads."""
        if self._process != os.getpid():
            self._begin()

    def _abandon(self, item: AsyncItem[Any], events: asyncio.AbstractEventLoop) -> None:
        """Release the item of an abandoned loop."""
        if self._queue is not None:
            self._abandoned.add(functools.partial(self._queue._release_abandoned, item._item), events)

    async def _claim(
        self,
        limit: int | None,
        kind: str,
        wait: Seconds,
        lease: Seconds | None,
        group: str | None,
        worker: str | None,
    ) -> list[AsyncItem[C]]:
        queue = await self._opened()
        plan = queue._plan_claim(limit, kind, wait, lease, group, worker)
        if not plan.wait:
            return await self._claim_once(queue, plan, 0.0, self._threads)
        clock = asyncio.get_running_loop().time
        deadline = clock() + plan.wait
        with Ticket(self._waits(queue)) as ticket:
            has_turn = ticket.waits.watcher.join_line(ticket.number, queue, plan)
            while has_turn or await ticket.turn(deadline):
                has_turn = False
                if items := await self._claim_once(queue, plan, max(0.0, deadline - clock()), self._looks):
                    return items
            return []

    async def _claim_once(
        self, queue: Queue[C], plan: _native.ClaimPlan, seconds_left: float, threads: ThreadPoolExecutor
    ) -> list[AsyncItem[C]]:
        """Claim what is due now. If the task is cancelled meanwhile, the items are released first."""
        token = _native.Token()
        claim = functools.partial(queue._claim, plan, seconds_left)
        claiming = self._submit(threads, token.call, claim)
        try:
            items = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            token.cancel()
            with contextlib.suppress(QueueError):
                if items := await through_cancellation(claiming):
                    await through_cancellation(self._run_in_thread(queue._release_many, items))
            raise
        return [AsyncItem(item, self._run_in_thread) for item in items]

    async def _interruptible(self, token: _native.Token, call: Callable[[], T], *, waits: bool = False) -> T:
        """Call something that may take long and can be ended by its token."""
        self._check_is_open()
        waiting = self._lock_waits.call(token.call, call) if waits else self._submit(self._threads, token.call, call)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            token.cancel()
            with contextlib.suppress(Exception):
                await through_cancellation(waiting)
            raise
