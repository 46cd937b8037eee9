"""The loops: claim and handle until nothing is due."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from membox_queue.errors import PayloadTooLargeError, QueueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from membox_queue import _native

logger = logging.getLogger("membox_queue")


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a drain did.

    `failed` items came to rest as failed, `postponed` ones went back for an automatic retry, `retried` ones were
    brought back by `retry_failed` before the drain began. `refused` means that another live worker held the lease;
    everything else is zero then.
    """

    done: int = 0
    failed: int = 0
    postponed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    refused: bool = False


def drain(queue: _native.Queue, handler: Callable[[_native.Item], Any], *, retry_failed: bool = False) -> DrainReport:
    """See `Queue.drain`."""
    if not callable(handler):
        raise TypeError(f"handler must be callable, not {type(handler).__qualname__}")
    if inspect.iscoroutinefunction(handler):
        raise TypeError("drain calls the handler and does not await it; give it a plain function")
    session = queue._begin_drain()
    if session is None:
        return DrainReport(refused=True)
    tally: Counter[str] = Counter()
    retried = 0
    try:
        retried = queue.retry_failed() if retry_failed else 0
        item = session.first()
        while item is not None:
            settled, item = _handle(session, handler, item)
            tally[settled] += 1
    except BaseException as error:
        # An item still in hand goes back uncounted, and the lease is free; what ended the loop matters more.
        try:
            session.close()
        except QueueError as failure:
            error.add_note(f"membox_queue could not give the item back: {failure}")
        raise
    return DrainReport(
        done=tally["done"],
        failed=tally["failed"],
        postponed=tally["postponed"],
        retried=retried,
        released=tally["released"],
        lost=tally["lost"],
    )


def _handle(
    session: _native.Drain, handler: Callable[[_native.Item], Any], item: _native.Item
) -> tuple[str, _native.Item | None]:
    """Run the handler once; record what came of it and claim the next item in one transaction."""
    try:
        result = handler(item)
    except Exception as error:
        logger.info("item %d failed: %s", item.id, type(error).__qualname__, exc_info=True)
        return _fail(session, error)
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        kind = type(result).__name__
        return _fail(
            session, TypeError(f"the handler returned a {kind}, which drain does not run; give it a plain function")
        )
    try:
        return session.done(result)
    except (TypeError, ValueError, PayloadTooLargeError) as error:
        logger.warning("the result of item %d is not stored: %s", item.id, error)
        return session.done(None)


def _fail(session: _native.Drain, error: Exception) -> tuple[str, _native.Item | None]:
    """Record what the handler raised; if that fails, both errors are told."""
    try:
        return session.failed(error)
    except QueueError as failure:
        raise failure from error
