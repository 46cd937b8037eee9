"""What a handler raised: what it means to the loop, how it is logged, and how its frames are released."""

from __future__ import annotations

import gc
import logging
import sys
import time
import traceback
from typing import Any

from membox_queue import _native
from membox_queue.errors import GiveUp, RetryLater, StaleClaimError
from membox_queue.loops.log import fields

logger = logging.getLogger("membox_queue")

BASE_ATTRIBUTES = vars(BaseException)
"""The attributes of an exception as its base class defines them: a subclass may override them to raise."""

meaning = _native.meaning


def type_name(value: object) -> str:
    """Return the name of a value's type, whatever its metaclass does when it is asked."""
    return str(vars(type)["__qualname__"].__get__(type(value)))


def says_that_its_claim_ended(raised: BaseException) -> bool:
    """Return whether it is what a handler raises when its item was cancelled or lost.

    That is `StaleClaimError`, or asyncio's CancelledError; a group counts if all its members do.
    """
    if issubclass(type(raised), BaseExceptionGroup):
        members = vars(BaseExceptionGroup)["exceptions"].__get__(raised)
        return all(says_that_its_claim_ended(member) for member in members)
    # A program without asyncio has not imported it.
    exceptions = sys.modules.get("asyncio.exceptions")
    kinds = (StaleClaimError,) if exceptions is None else (StaleClaimError, exceptions.CancelledError)
    return issubclass(type(raised), kinds)


def log(
    level: int, error: BaseException | None, message: str, *arguments: Any, extra: dict[str, Any] | None = None
) -> None:
    """Log an exception with its traceback; one whose attributes raise is logged without."""
    try:
        logger.log(level, message, *arguments, exc_info=error, extra=extra)
    except BaseException as raised:
        if meaning(raised) != "failed":
            raise
        plain = [each if type(each) in (int, str) else type_name(each) for each in arguments]
        logger.log(level, message, *plain, extra=extra)


def log_failure(item: _native.Item, raised: BaseException, began: float, *, is_reported: bool) -> None:
    """Log what a handler raised since it began: as a warning, unless `on_error` or `progress` report it.

    `RetryLater` and `GiveUp` are requests and not errors, but may have an error as their cause.
    """
    told = fields("raised", item, error=type_name(raised), seconds=round(time.monotonic() - began, 6))
    if issubclass(type(raised), RetryLater | GiveUp):
        request = "put off" if issubclass(type(raised), RetryLater) else "given up"
        cause = BASE_ATTRIBUTES["__cause__"].__get__(raised)
        log(logging.INFO, cause, "item %d %s: %s", item.id, request, raised, extra=told)
        return
    level = logging.INFO if is_reported else logging.WARNING
    # An end that the handler has committed stands.
    text = "the handler of item %d raised after its end: %s" if item._settled else "item %d failed: %s"
    log(level, raised, text, item.id, type_name(raised), extra=told)


def release_frames(raised: BaseException | None) -> None:
    """Free what only a handler's frames, or a reference cycle, keep alive: an open connection.

    While such a connection has an open transaction, nothing can be recorded. A traceback keeps the frames for as long
    as the exception is needed.
    """
    chain, seen = [raised], set[int]()
    while chain:
        error = chain.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            traceback.clear_frames(BASE_ATTRIBUTES["__traceback__"].__get__(error))
            chain += [BASE_ATTRIBUTES["__cause__"].__get__(error), BASE_ATTRIBUTES["__context__"].__get__(error)]
    gc.collect()
