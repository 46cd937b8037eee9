"""Waits that outlast their own cancellation: what a thread does is done before that is told."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def outlast(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Wait until something is done, however often we are cancelled meanwhile; the caller raises that later."""
    future = asyncio.ensure_future(work)
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    return future.result()


async def settled(future: asyncio.Future[T]) -> T:
    """Wait for a thread's answer, also when we are cancelled meanwhile: what it did is done, and must be known."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await outlast(future)
        raise
