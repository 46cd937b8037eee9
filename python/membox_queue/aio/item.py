"""AsyncItem: a claimed item in asyncio."""

from __future__ import annotations

import asyncio
import functools
import inspect
from types import GetSetDescriptorType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from membox_queue import _native
from membox_queue.aio.threads import through_cancellation
from membox_queue.connections import asynchronous
from membox_queue.connections.block import OpenBlock
from membox_queue.options import ChildOptions
from membox_queue.signatures import shows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime, timedelta
    from types import TracebackType
    from typing import Literal, Self, Unpack

    from typing_extensions import TypeVar as TypeVarWithDefault

    from membox_queue.options import Status

    C_co = TypeVarWithDefault("C_co", default=Any, covariant=True)
else:
    C_co = TypeVar("C_co", covariant=True)


class AsyncItem(Generic[C_co]):
    """A claimed item in asyncio; `async with item:` ends the claim as `with item:` does.

    All attributes of `Item` can be read here, except those that read the file: `lost` is what is known so far, and
    `is_lost`, `is_cancelled`, `check`, `after` and `set_progress` are awaited.
    """

    if TYPE_CHECKING:
        id: int
        queue: str
        home: str
        stage: int
        parent: int | None
        project: str | None
        source_path: str | None
        doc_date: str | None
        status: Status
        retries: int
        error: str | None
        result: Any
        priority: int
        headers: dict[str, Any]
        group: str | None
        key: str | None
        attempt: int
        worker: str | None
        max_retries: int | None
        enqueued_at: datetime
        started_at: datetime | None
        finished_at: datetime | None
        run_at: datetime | None
        lease_until: datetime | None
        expires_at: datetime | None
        stopping: bool
        progress: float | None
        progress_note: str | None

    def __init__(self, item: _native.Item[C_co], run: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self._item = item
        self._run = run
        self._is_kept = False

    @property
    def content(self) -> C_co:
        """What was enqueued."""
        return self._item.content

    def __getattr__(self, name: str) -> Any:
        if name == "cancelled":
            raise AttributeError(
                "cancelled would read the file in the event loop's thread; await item.is_cancelled() instead"
            )
        return getattr(self._item, name)

    @property
    def lost(self) -> bool:
        """Whether the claim is known to be lost."""
        return self._item._known_lost

    async def is_lost(self) -> bool:
        """Return whether the claim is lost, read from the file."""
        return bool(await self._run(getattr, self._item, "lost"))

    async def is_cancelled(self) -> bool:
        """Return whether the item was cancelled, read from the file."""
        return bool(await self._run(getattr, self._item, "cancelled"))

    async def check(self) -> None:
        """Raise `StaleClaimError` if the claim is lost or the item was cancelled."""
        await self._run(self._item.check)

    @shows(ChildOptions, lambda: _native.Item.enqueue)
    def enqueue(
        self, content: Any, *, queue: str | _native._NamedQueue | None = None, **options: Unpack[ChildOptions]
    ) -> None:
        """Enqueue an item with the end of this one; a plain call, see `Item.enqueue`."""
        self._item.enqueue(content, queue=queue, **options)

    async def after(self) -> list[_native.Item[Any] | None]:
        """Return the items it has waited for; see `Item.after`."""
        return list(await self._run(getattr, self._item, "after"))

    async def step(
        self, name: str, function: Callable[..., Any], /, *arguments: Any, connection: Any = None, **named: Any
    ) -> Any:
        """Call a function once, or await a coroutine function; see `Item.step`."""
        if (known := await self._run(self._item._find_step, name)) is not None:
            return known[0]
        result = function(*arguments, **named)
        if inspect.isawaitable(result):
            result = await result
        if (run_sync := getattr(connection, "run_sync", None)) is not None:
            return await run_sync(lambda own: self._item._add_step(name, result, own))
        return await self._run(self._item._add_step, name, result, connection)

    async def sleep(self, name: str, seconds: float | timedelta, /) -> None:
        """Sleep once, without holding a slot; see `Item.sleep`."""
        await self._run(self._item.sleep, name, seconds)

    async def gather(
        self, name: str, items: Iterable[Any], /, *, if_failed: Literal["cancel", "run"] = "cancel"
    ) -> list[_native.Item[Any] | Any]:
        """Enqueue items once, and wait until all are done; see `Item.gather`."""
        return list(await self._run(functools.partial(self._item.gather, if_failed=if_failed), name, items))

    async def set_progress(self, fraction: float, note: str | None = None) -> bool:
        """Record how far the work is. Return False if the claim was lost."""
        return bool(await self._run(self._item.set_progress, fraction, note))

    def transaction(self, connection: Any) -> AbstractAsyncContextManager[AsyncItem[C_co]]:
        """End the claim in a transaction of your own connection; see `Item.transaction`.

        `connection` is an AsyncConnection or AsyncSession of SQLAlchemy, or a connection of aiosqlite.
        """
        return AsyncTransaction(self, connection)

    async def _keep(self) -> None:
        """Let a native thread renew the claim from now on."""
        if not self._is_kept:
            await self._run(self._item.__enter__)
            self._is_kept = True

    async def __aenter__(self) -> Self:
        await self._keep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        task = asyncio.current_task()
        return bool(await self._run(self._item._leave, error, task is not None and task.cancelling() > 0))

    def as_dict(self) -> dict[str, Any]:
        """Return what is known about the item; see `Item.as_dict`."""
        return self._item.as_dict()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the copy of an `Item`, which holds no claim."""
        return self._item.__reduce__()

    def __repr__(self) -> str:
        return repr(self._item)


class AsyncTransaction:
    """`async with item.transaction(connection):`; what runs on the connection runs where its driver waits."""

    def __init__(self, item: AsyncItem[Any], connection: Any) -> None:
        self._item = item
        self._on_connection = asynchronous.on(connection)
        self._is_cancelled = False

    async def __aenter__(self) -> AsyncItem[Any]:
        block = await self._item._run(self._item._item._block)
        self._block = await self._on_connection(lambda own: OpenBlock(own, block).entered())
        return self._item

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task = asyncio.current_task()
        self._block.is_cancelled = task is not None and task.cancelling() > 0
        failure = await through_cancellation(self._on_connection(lambda _: self._block.left(error)))
        await self._item._run(self._block.settle, failure)
        if failure is not error and failure is not None:
            raise failure


def same_attribute(name: str, words: str | None) -> property:
    """Return an attribute that has the value and the words of the native item's."""
    return property(lambda item: getattr(item._item, name), doc=words)


for name, attribute in vars(_native.Item).items():
    is_read = isinstance(attribute, GetSetDescriptorType) and not name.startswith("_")
    if is_read and name != "cancelled" and name not in vars(AsyncItem):
        setattr(AsyncItem, name, same_attribute(name, attribute.__doc__))


def plain(argument: Any) -> Any:
    """Return the native item of an `AsyncItem`; anything else unchanged."""
    return argument._item if isinstance(argument, AsyncItem) else argument
