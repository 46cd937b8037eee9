"""Loop: one run of a loop, and what its slots share, whether they are threads or tasks."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import time
import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

from membox_queue.errors import QueueError, StaleClaimError
from membox_queue.loops.log import fields, log_ended, log_started, log_stopped, name_of
from membox_queue.loops.plan import check_call
from membox_queue.loops.progress import LoopEvent, reporter
from membox_queue.loops.raised import log, meaning
from membox_queue.loops.report import DrainReport
from membox_queue.opening import content_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from membox_queue import _native
    from membox_queue.loops.plan import Handler, Middleware, Plan
    from membox_queue.loops.stopping import Stopping

logger = logging.getLogger("membox_queue")

SLICE = 0.5
"""A wait in native code comes back to Python at least this often; a signal ends it at once."""
LONG_SLICE = 10.0
"""The same in threads that signals do not reach."""


running: weakref.WeakSet[Loop] = weakref.WeakSet()
"""The loops of this process that have begun."""


class HandlesItems:
    """Something that handles items with `handle`, whatever it does when it is called; `shape` is their type."""

    handle: Handler
    shape: Any


class Loop:
    """One run of a loop: its plan, its handlers, its counts, and the native half that claims and records."""

    def __init__(
        self,
        queues: Sequence[_native.Queue],
        handlers: Sequence[Handler],
        plan: Plan,
        in_thread: Callable[[Handler], Handler] | None = None,
    ) -> None:
        self.plan = plan
        self.queues = queues
        if plan.batch and any(isinstance(handler, HandlesItems) for handler in handlers):
            raise ValueError("a registered handler takes one item at a time; batch needs one that takes a list")
        self.shapes = [shape_for(queue, handler) for queue, handler in zip(queues, handlers, strict=True)]
        self.handler_names = [name_of(handler) for handler in handlers]
        handlers = [handler.handle if isinstance(handler, HandlesItems) else handler for handler in handlers]
        for handler in handlers:
            check_call(handler, "the handler", "the items" if plan.batch else "the item")
        parts: list[Callable[..., Any]] = [*handlers, *plan.middleware]
        self.is_async = any(is_async(part) for part in parts)
        if self.is_async and in_thread is not None:
            # Inside middleware that is awaited.
            handlers = [each if is_async(each) or not callable(each) else in_thread(each) for each in handlers]
        self.handlers = [wrapped(handler, plan.middleware) for handler in handlers]
        self.retried = 0
        self.counts: Counter[str] = Counter()
        self.maintained_at = time.monotonic()
        self.lock = threading.Lock()
        # The grace thread and the loop itself may both close it; the second one returns after the first has counted.
        self.closing = threading.RLock()
        self.progress = reporter(plan.progress, queues)
        self._native: _native.WorkerLoop | None = None
        self.stopping: Stopping | None = None
        self.begun = threading.Event()
        self.threads: set[int] = set()
        self.stop_asked = False
        self.is_exiting = False
        # Items whose end could not be recorded yet, because the file is locked.
        self.unrecorded: set[_native.Item | None] = set()
        self.was_stopped = False
        self.has_ended = False
        self.is_closed = False
        self.began = time.monotonic()
        # What it returned or raised, for a loop that runs in a thread of its own.
        self.outcome: DrainReport | BaseException | None = None

    def begin(self) -> bool:
        """Take the worker lease if that is the plan. Return False when another live worker holds it."""
        plan, first = self.plan, self.queues[0]
        self._native = first._begin_loop(
            list(self.queues[1:]),
            slots=plan.concurrency,
            exclusive=plan.exclusive,
            stays=plan.stays,
            linger=plan.linger,
            limit=plan.limit,
            whole_groups=plan.batch == "group",
            max_runtime=plan.max_runtime,
            ttl=plan.lease_ttl,
        )
        if self._native is None:
            return False
        running.add(self)
        self.began = time.monotonic()
        log_started(self.queues, self.handler_names, plan)
        if plan.retry_failed:
            self.retried = sum(queue.retry_failed() for queue in self.queues)
        return True

    @property
    def has_begun(self) -> bool:
        """Whether `begin` has started the native half."""
        return self._native is not None

    @property
    def native(self) -> _native.WorkerLoop:
        """The native half, once the loop has begun."""
        assert self._native is not None, "begin comes first"
        return self._native

    @property
    def is_reported(self) -> bool:
        """Whether `on_error` or `progress` tell the user about failures."""
        return self.plan.on_error is not None or bool(self.progress)

    def stop(self) -> None:
        """Claim no more; running handlers have the grace period to finish. It may be called before `begin`."""
        self.stop_asked = True
        if self.stopping is not None:
            self.stopping.stop()
        elif self._native is not None:
            self._native.stop()

    def end(self) -> None:
        """Note whether the loop was asked to stop, before it is stopped by `close`."""
        if not self.has_ended:
            self.has_ended = True
            self.was_stopped = self.native.stopped

    def close(self) -> None:
        """Release what is still claimed."""
        self.end()
        with self.closing:
            released = self.native.close()
            with self.lock:
                self.counts["released"] += released
            if not self.is_closed:
                self.is_closed = True
                log_stopped(self.queues, self.report(), time.monotonic() - self.began)

    def report(self) -> DrainReport:
        """Return what was done so far."""
        counts = self.counts
        return DrainReport(
            done=counts["done"],
            moved=counts["moved"],
            blocked=counts["blocked"],
            failed=counts["failed"],
            postponed=counts["postponed"],
            retried=self.retried,
            released=counts["released"],
            lost=counts["lost"],
            cancelled=counts["cancelled"],
            unstored=counts["unstored"],
            stopped=self.was_stopped,
        )

    @property
    def must_end_now(self) -> bool:
        """Whether the loop ends now, even if an end is not recorded yet."""
        return self.is_exiting or (self.stopping is not None and self.stopping.is_over)

    def count(self, items: Sequence[_native.Item], ends: Sequence[Any], began: float) -> None:
        """Count the ends of items that were claimed at a time, and report each one."""
        log_ended(items, ends, began)
        for item, end in zip(items, ends, strict=False):
            with self.lock:
                self.counts[end] += 1
            if end == "cancelled":
                logger.info("item %d was cancelled", item.id, extra=fields("cancelled", item))
            if self.progress:
                self.progress(LoopEvent(end, item))

    def count_unstored(self, ends: Iterable[str], results: Iterable[Any]) -> None:
        """Count the items that are done, and whose result could not be stored."""
        count = sum(end == "done" and result is not None for end, result in zip(ends, results, strict=False))
        with self.lock:
            self.counts["unstored"] += count

    def report_lost(self, lost: Iterable[tuple[_native.Item, StaleClaimError]], *, is_called_off: bool) -> None:
        """Report claims that were lost before their end was recorded: a warning, unless the handler ended for that."""
        for item, error in lost:
            level = logging.INFO if is_called_off else logging.WARNING
            reason = str(error).partition(": ")[2] or error
            logger.log(level, "item %d was lost: %s", item.id, reason, extra=fields("lost", item))
            self.notify_on_error(error, item, "lost")

    def notify_on_error(self, error: BaseException, item: _native.Item | None, phase: str) -> None:
        """Call `on_error`; what it raises itself is logged and goes no further."""
        if self.plan.on_error is None:
            return
        try:
            self.plan.on_error(error, item, phase)
        except BaseException as raised:
            if meaning(raised) != "failed":
                raise
            log(logging.ERROR, raised, "on_error raised", extra=fields("on_error_raised", item, phase=phase))


def is_claim_over(items: Sequence[_native.Item]) -> bool:
    """Return whether the first item that has no end yet was cancelled or lost, read from the file."""
    try:
        return next((item.cancelled or item.lost for item in items if not item._settled), False)
    except QueueError:
        return False


def is_any_stopped() -> bool:
    """Return whether a loop of this process was asked to stop."""
    return any(loop.native.stopped for loop in tuple(running))


def lost_claims(items: Sequence[_native.Item], ends: Sequence[str]) -> list[tuple[_native.Item, StaleClaimError]]:
    """Return the items whose claims were lost, each with the reason, read from the file."""
    return [(item, reason_lost(item)) for item, end in zip(items, ends, strict=False) if end == "lost"]


def reason_lost(item: _native.Item) -> StaleClaimError:
    """Return the error that says why a claim was lost."""
    try:
        item.check()
    except StaleClaimError as error:
        return error
    except QueueError:
        pass
    lost = StaleClaimError(f"the claim on item {item.id} was lost before its end was recorded")
    lost.id, lost.queue = item.id, item.queue
    return lost


def shape_for(queue: _native.Queue, handler: Any) -> Any:
    """Return the type of the items that a handler gets from a queue."""
    wanted = handler.shape if isinstance(handler, HandlesItems) else None
    shape = content_shape(queue)
    if shape is not None and wanted is not None and shape.type != wanted.type:
        raise TypeError(f"the queue {queue.name!r} holds {shape.name}, and its handler takes {wanted.name}")
    return shape or wanted


def wrapped(handler: Handler, middleware: Sequence[Middleware]) -> Handler:
    """Put middleware around a handler; the first of the list is the outermost."""
    for layer in reversed(list(middleware)):
        handler = layered(layer, handler)
    return handler


def layered(layer: Middleware, inner: Handler) -> Handler:
    """Put one layer around a handler."""
    return lambda argument: layer(argument, inner)


def is_async(handler: Callable[..., Any]) -> bool:
    """Return whether calling it gives something to await."""
    function = handler.handle if isinstance(handler, HandlesItems) else handler
    function = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
