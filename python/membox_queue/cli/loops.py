"""The loop that fits its handlers: plain functions run in threads, coroutine functions on asyncio."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from membox_queue.loops.loop import is_async
from membox_queue.loops.plan import DEFAULT_GRACE, Plan
from membox_queue.loops.progress import stopping_message
from membox_queue.loops.report import DrainReport
from membox_queue.queue import Queue
from membox_queue.workers.pool import Worker
from membox_queue.workers.targets import Served

if TYPE_CHECKING:
    from membox_queue.aio import AsyncQueue

    Start = Callable[[AsyncQueue], Coroutine[Any, Any, DrainReport]]


def loop(queue: Queue, handler: Callable[[Any], Any], *, stays: bool, **plan: Any) -> DrainReport:
    """Drain, or work until stopped. Ctrl-C and SIGTERM stop it; a second signal raises KeyboardInterrupt."""
    if is_async(handler):
        from membox_queue.aio.twin import twin_of

        return run_async(
            lambda: twin_of(queue), lambda own: own.work(handler, **plan) if stays else own.drain(handler, **plan)
        )
    return queue.work(handler, **plan) if stays else queue.drain(handler, **plan)


def loop_over(served: Sequence[Served], *, stays: bool, **plan: Any) -> DrainReport:
    """The same for several queues of one file, without a worker lease."""
    first, *rest = served
    if not any(is_async(one.handler) for one in served):
        handlers = {one.name: one.handler for one in served}
        options: Any = {one.name: one.options for one in served}
        worker = Worker(first.file, handlers, options=options, **plan)
        return worker.run() if stays else worker.drain()
    from membox_queue.aio import AsyncQueue
    from membox_queue.aio.twin import loop_over_all

    with contextlib.ExitStack() as opened:
        others = [(opened.enter_context(Queue(one.file, one.name, **one.options)), one.handler) for one in rest]
        run = Plan(stays=stays, **plan)
        return run_async(
            lambda: AsyncQueue(first.file, first.name, **first.options),
            lambda own: loop_over_all(own, first.handler, run, others),
        )


def run_async(queue: "Callable[[], AsyncQueue]", start: "Start") -> DrainReport:
    """Run a loop of asyncio on a queue object of its own."""
    try:
        return asyncio.run(awaiting(queue, start))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def awaiting(queue: "Callable[[], AsyncQueue]", start: "Start") -> DrainReport:
    """Run the loop, and stop it when a signal comes."""
    async with queue() as own:
        is_watched = sys.stderr.isatty()
        running = asyncio.create_task(start(own))
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
