"""The loop that fits a handler: plain functions run in threads, coroutine functions on asyncio."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from typing import Any

from membox_queue.loops.loop import is_async
from membox_queue.loops.plan import DEFAULT_GRACE
from membox_queue.loops.progress import stopping_message
from membox_queue.loops.report import DrainReport
from membox_queue.queue import Queue


def loop(queue: Queue, handler: Callable[[Any], Any], *, stays: bool, **plan: Any) -> DrainReport:
    """Drain, or work until stopped. Ctrl-C and SIGTERM stop it; a second signal raises KeyboardInterrupt."""
    if is_async(handler):
        try:
            return asyncio.run(awaiting(queue, handler, stays, plan))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
    return queue.work(handler, **plan) if stays else queue.drain(handler, **plan)


async def awaiting(queue: Queue, handler: Callable[[Any], Any], stays: bool, plan: dict[str, Any]) -> DrainReport:
    """The same for a coroutine function, on a queue object of its own."""
    from membox_queue.aio import AsyncQueue

    async with AsyncQueue(queue.path or ":memory:", queue.name, type=queue.type, **queue._reopen_options) as own:
        is_watched = sys.stderr.isatty()
        running = asyncio.create_task(own.work(handler, **plan) if stays else own.drain(handler, **plan))
        heard = []

        def on_signal() -> None:
            heard.append(True)
            if len(heard) > 1:
                running.cancel()
                return
            own.stop()
            if is_watched:
                print(stopping_message(DEFAULT_GRACE), file=sys.stderr)

        for number in (signal.SIGINT, signal.SIGTERM):
            # Where asyncio cannot (Windows), Ctrl-C ends it at once.
            with contextlib.suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, on_signal)
        return await running
