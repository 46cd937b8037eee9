"""Items: what `async for item in queue` goes through."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from membox_queue.aio.waiting import outlast

if TYPE_CHECKING:
    from typing import Self

    from membox_queue.aio.item import AsyncItem
    from membox_queue.aio.queue import AsyncQueue

C = TypeVar("C")


class Items(Generic[C]):
    """Claims for ever; each item is renewed until `async with item:` ends it, and given back if nothing did.

    That is when the next one is asked for, at `aclose`, or when the loop is left: a later verb of the queue, `close`
    too, finds the item given back.
    """

    def __init__(self, queue: AsyncQueue[C]) -> None:
        self._queue = queue
        self._events: asyncio.AbstractEventLoop | None = None
        self._in_hand: AsyncItem[C] | None = None
        self._is_claiming = False
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AsyncItem[C]:
        if self._is_closed:
            raise StopAsyncIteration
        if self._is_claiming:
            raise RuntimeError("another task waits for the next item of this loop; give each task a loop of its own")
        self._is_claiming = True
        self._events = asyncio.get_running_loop()
        try:
            await self._give_back()
            while (item := await self._queue.claim(wait=math.inf)) is None:
                pass
            self._in_hand = item
            await item._keep()
        except BaseException:
            await outlast(self._give_back())
            raise
        finally:
            self._is_claiming = False
        return item

    async def aclose(self) -> None:
        """End the loop, and give back what is in hand."""
        self._is_closed = True
        await outlast(self._give_back())

    async def _give_back(self) -> None:
        if (item := self._taken_back()) is not None:
            await self._queue.release(item)

    def _taken_back(self) -> AsyncItem[Any] | None:
        """What is in hand and has not ended; nothing is in hand any more."""
        item, self._in_hand = self._in_hand, None
        return None if item is None or item._item._settled else item

    def __del__(self) -> None:
        if (item := self._taken_back()) is not None and self._events is not None:
            self._queue._leave(item, self._events)
