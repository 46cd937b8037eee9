"""`for item in queue`: claims items, and releases those that the loop abandons."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, TypeVar

from membox_queue.errors import QueueError

if TYPE_CHECKING:
    from collections.abc import Generator

    from membox_queue import _native

T = TypeVar("T")


def claimed_items(queue: _native.Queue[T]) -> Generator[_native.Item[T], Any, None]:
    """Claim forever. Each item is renewed until `with item:` ends it, and released if nothing did.

    It is released when the next one is asked for, or when the loop is left.
    """
    while True:
        while (item := queue.claim(wait=math.inf)) is None:
            pass
        try:
            # A native thread renews the claim from now on.
            item.__enter__()
            yield item
        except BaseException:
            # The loop was left; what it raised, if anything, matters more than a failure to release.
            with contextlib.suppress(QueueError):
                release(queue, item)
            raise
        release(queue, item)


def release(queue: _native.Queue[Any], item: _native.Item[Any]) -> None:
    """Release an item whose claim has not ended."""
    if not item._settled:
        queue._release_abandoned(item)
