"""What one slot of a loop does: claim, handle and record, as a generator of requests to its driver."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.errors import (
    CorruptDatabaseError,
    DuplicateItemError,
    NotADatabaseError,
    PayloadTooLargeError,
    QueueBusyError,
    QueueError,
    ReadOnlyError,
    StorageError,
    note,
)
from membox_queue.loops.log import fields, log_claimed
from membox_queue.loops.loop import is_claim_over, lost_claims
from membox_queue.loops.progress import LoopEvent
from membox_queue.loops.raised import log, log_failure, meaning, release_frames, says_that_its_claim_ended
from membox_queue.loops.requests import Call, Handle, Pause, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from membox_queue.loops.loop import Loop
    from membox_queue.loops.requests import Requests


logger = logging.getLogger("membox_queue")

MAINTAIN_EVERY = 60.0
"""Seconds between two runs of retention and the checkpoint."""

OPEN_TRANSACTION = (
    "the handler left a write transaction open on the queue's file: another connection of this process still held the "
    "write lock when the end of the item was to be recorded; commit it or roll it back before the handler returns"
)


NOT_COMMITTED = (
    "the handler ended it in a transaction that was not committed; commit that transaction before the handler returns"
)


class Slot:
    """One slot of a loop. A driver sends the answer to each request, or throws what carrying it out raised."""

    def __init__(self, loop: Loop, number: int) -> None:
        self.loop = loop
        self.number = number
        self.began = 0.0

    def requests(self) -> Requests[None]:
        """Claim, handle and record until there is nothing more to do."""
        loop, number = self.loop, self.number
        is_batch, handlers, shapes, progress = loop.plan.batch is not None, loop.handlers, loop.shapes, loop.progress
        step: _native.LoopStep = yield from self.call_store("claim", None, loop.native.next, number)
        while step.next != "over":
            if step.next == "wait":
                while not (yield from self.retry_store("claim", None, Wait(number))):
                    yield from self.maintain()
                step = yield from self.call_store("claim", None, loop.native.next, number)
                continue
            place, items = step.queue, step.items
            self.began = time.monotonic()
            log_claimed(items)
            raised: BaseException | None = None
            result: Any = None
            fitting = items
            if shapes[place] is not None:
                raised, fitting = yield from self.fit(place, items)
            if progress:
                for item in items:
                    progress(LoopEvent("claimed", item))
            meant = "failed"
            is_called_off = False
            if raised is None:
                raised, result = yield Handle(handlers[place], fitting if is_batch else items[0])
                if raised is not None:
                    meant = meaning(raised, bool(result))
                    if meant in ("released", "crashed"):
                        raise raised
            results: list[Any] = []
            if raised is None:
                results = results_of(items, fitting, result, loop.plan.batch)
                raised = yield from self.encode_stages(place, items, results)
            if raised is None:
                step = yield from self.record(items, results)
            elif meant == "suspended":
                step = yield from self.suspend(items, raised)
            elif meant == "exited":
                yield from self.count_exit(items, raised)
                raise raised
            else:
                is_called_off = says_that_its_claim_ended(raised) and (yield Call(is_claim_over, (items,)))
                step = yield from self.record_failure(items, raised, is_called_off=is_called_off)
            ended = step.ended
            if "lost" in ended:
                loop.report_lost((yield Call(lost_claims, (items, ended))), is_called_off=is_called_off)
            loop.count(items, ended, self.began)
            if time.monotonic() - loop.maintained_at >= MAINTAIN_EVERY:
                yield from self.maintain()

    def fit(self, place: int, items: list[_native.Item]) -> Requests[tuple[BaseException | None, list[_native.Item]]]:
        """Convert the content to its type. The first item that does not fit fails; those behind it are released.

        Return the error if that is the first item of all, and the items that are left to handle.
        """
        shape = self.loop.shapes[place]
        for index, item in enumerate(items):
            try:
                item._fit(shape)
            except BaseException as error:
                if meaning(error) != "failed":
                    raise
                if index == 0:
                    return error, items
                yield from self.fail_from(place, items, index, error)
                return None, items[:index]
        return None, items

    def encode_stages(
        self, place: int, items: list[_native.Item], results: list[Any]
    ) -> Requests[BaseException | None]:
        """Convert the content of each `Next` among the results to the type of the queue that it goes into.

        The first item whose next stage cannot be stored fails; those behind it are released. Return the error if that
        is the first item of all.
        """
        queue, shape = self.loop.queues[place], self.loop.shapes[place]
        for index, result in enumerate(results):
            if not isinstance(result, _native.Next):
                continue
            try:
                results[index] = result._encoded(queue, shape)
                yield from self.call_store(
                    "finish", items[index], self.loop.native.check_result, self.number, results[index]
                )
            except BaseException as error:
                if meaning(error) != "failed" or isinstance(error, StorageError | QueueBusyError):
                    raise
                if index == 0:
                    return error
                yield from self.fail_from(place, items, index, error)
                # These have their ends.
                results[index:] = [None] * (len(results) - index)
                return None
        return None

    def fail_from(self, place: int, items: list[_native.Item], index: int, error: BaseException) -> Requests[None]:
        """Fail one item of a batch, and release those behind it."""
        queue, item = self.loop.queues[place], items[index]
        self.loop.notify_on_error(error, item, "handler")
        yield from self.call_store("finish", item, queue._fail_batch, items[index:], error)

    def record(self, items: list[_native.Item], results: list[Any]) -> Requests[_native.LoopStep]:
        """Record what the handler returned and claim the next, in one transaction."""
        loop, native, number = self.loop, self.loop.native, self.number

        def fail_instead() -> Call:
            """The handler's own writes are not committed, so its item is not done."""
            release_frames(None)
            failure = QueueBusyError(OPEN_TRANSACTION)
            log_failure(items[0], failure, self.began, is_reported=loop.is_reported)
            loop.notify_on_error(failure, items[0], "handler")
            return Call(native.failed, (number, items, failure))

        is_told = yield from self.look_at_promises(items)

        def finish(results: list[Any]) -> Requests[_native.LoopStep]:
            request = Call(native.done, (number, results))
            instead = None if is_told else fail_instead
            step: _native.LoopStep = yield from self.retry_store("finish", items[0], request, instead)
            if not is_told:
                self.report_uncommitted([item for item in items if item._uncommitted])
            return step

        try:
            return (yield from finish(results))
        except DuplicateItemError as error:
            # An item that the handler enqueued may not be a second one of its key.
            return (yield from self.record_failure(items, error, is_called_off=False))
        except (TypeError, ValueError, PayloadTooLargeError) as error:
            if all(isinstance(result, _native.Next) for result in results):
                # What the next stage would wait for cannot be.
                return (yield from self.record_failure(items, error, is_called_off=False))
        # Codecs are imported only when they are needed.
        from membox_queue.content.results import storable

        results = [result if isinstance(result, _native.Next) else storable(result) for result in results]
        unstored: list[Any] = [None] * len(results)
        for index, (item, result) in enumerate(zip(items, results, strict=False)):
            if isinstance(result, _native.Next):
                continue
            try:
                native.check_result(number, result)
            except (TypeError, ValueError, PayloadTooLargeError) as error:
                told = fields("result_not_stored", item)
                logger.warning("the result of item %d is not stored: %s", item.id, error, extra=told)
                unstored[index], results[index] = result, None
        try:
            step = yield from finish(results)
        except (ValueError, DuplicateItemError) as error:
            return (yield from self.record_failure(items, error, is_called_off=False))
        loop.count_unstored(step.ended, unstored)
        return step

    def look_at_promises(self, items: list[_native.Item]) -> Requests[bool]:
        """Look whether ends that the handler said on its own connection were committed.

        If its transaction is still open, nothing can be recorded yet; that is reported at once. Return whether it was.
        """
        native = self.loop.native
        if not any(item._promised for item in items):
            return False
        if not (yield from self.call_store("finish", items[0], native.look_at_promises, self.number)):
            return False
        if not native.blocked_by_this_process:
            return False
        release_frames(None)
        if not native.blocked_by_this_process:
            return False
        self.report_uncommitted([item for item in items if item._promised])
        return True

    def report_uncommitted(self, items: list[_native.Item]) -> None:
        """Report items that fail because the handler ended them in a transaction that was not committed."""
        for item in items:
            logger.warning("item %d failed: %s", item.id, NOT_COMMITTED, extra=fields("uncommitted", item))
            self.loop.notify_on_error(QueueError(f"item {item.id}: {NOT_COMMITTED}"), item, "finish")

    def record_failure(
        self, items: list[_native.Item], raised: BaseException, *, is_called_off: bool
    ) -> Requests[_native.LoopStep]:
        """Record what the handler raised and claim the next, in one transaction.

        A handler that ended because its item was cancelled or lost has not failed; the item's end is reported.
        """
        loop = self.loop
        exiting: BaseException | None = None
        if any(item._promised for item in items):
            yield from self.call_store("finish", items[0], loop.native.look_at_promises, self.number)
        try:
            if not is_called_off:
                log_failure(items[0], raised, self.began, is_reported=loop.is_reported)
                loop.notify_on_error(raised, items[0], "handler")
        except BaseException as error:
            if meaning(error) != "exited":
                raise
            # `on_error` exits the program. The failure is recorded first: otherwise the item would end every worker.
            exiting, loop.is_exiting = error, True
            loop.native.stop()
        if loop.native.blocked_by_this_process:
            release_frames(raised)
        try:
            step: _native.LoopStep = yield from self.call_store(
                "finish", items[0], loop.native.failed, self.number, items, raised
            )
        except QueueError as failure:
            raise (exiting or failure) from raised
        if exiting is not None:
            raise exiting
        return step

    def suspend(self, items: list[_native.Item], suspended: BaseException) -> Requests[_native.LoopStep]:
        """Record that a handler sleeps or waits for items, and claim the next, in one transaction."""
        try:
            step: _native.LoopStep = yield from self.call_store(
                "finish", items[0], self.loop.native.failed, self.number, items, suspended
            )
        except (ValueError, DuplicateItemError) as error:
            # What it would wait for cannot be.
            return (yield from self.record_failure(items, error, is_called_off=False))
        return step

    def count_exit(self, items: list[_native.Item], exiting: BaseException) -> Requests[None]:
        """Count a handler's SystemExit against its item, as a lost claim is counted.

        Otherwise an item whose handler always exits would be retried forever, and end every worker.
        """
        loop = self.loop
        loop.is_exiting = True
        loop.native.stop()
        told = fields("exited", items[0])
        log(logging.WARNING, exiting, "the handler of item %d exited the program", items[0].id, extra=told)
        loop.notify_on_error(exiting, items[0], "handler")
        if loop.native.blocked_by_this_process:
            release_frames(exiting)
        try:
            yield from self.call_store("finish", items[0], loop.native.failed, self.number, items, exiting)
        except QueueError as failure:
            note(exiting, f"membox_queue could not record it: {failure}")

    def call_store(
        self, phase: str, item: _native.Item | None, function: Callable[..., Any], *arguments: Any
    ) -> Requests[Any]:
        """Call a function that needs the store; when the store is busy or out of space, wait and try again."""
        return (yield from self.retry_store(phase, item, Call(function, arguments)))

    def retry_store(
        self,
        phase: str,
        item: _native.Item | None,
        request: Call | Wait,
        when_blocked_by_us: Callable[[], Call] | None = None,
    ) -> Requests[Any]:
        """Make a request that needs the store; while the store is busy or out of space, pause and repeat it.

        When another connection of this very process keeps the file locked, `when_blocked_by_us` gives the request to
        make instead.
        """
        loop = self.loop
        pauses: Iterator[float] | None = None
        is_recording = phase == "finish"
        while True:
            try:
                answer = yield request
                loop.unrecorded.discard(item)
                return answer
            except (CorruptDatabaseError, NotADatabaseError, ReadOnlyError):
                raise
            except (QueueBusyError, StorageError) as error:
                is_busy = isinstance(error, QueueBusyError)
                if when_blocked_by_us is not None and is_busy and loop.native.blocked_by_this_process:
                    request, when_blocked_by_us = when_blocked_by_us(), None
                level = logging.WARNING if pauses is None else logging.INFO
                told = fields("store_busy", item, phase=phase)
                logger.log(level, "membox_queue could not %s, and tries again: %s", phase, error, extra=told)
                loop.notify_on_error(error, item, phase)
                if is_recording and is_busy:
                    loop.unrecorded.add(item)
                pauses = pauses or self.pauses(is_recording=is_recording)
                pause = next(pauses, None)
                if pause is None:
                    loop.unrecorded.discard(item)
                    raise
            yield Pause(pause)

    def pauses(self, *, is_recording: bool) -> Iterator[float]:
        """Growing pauses. A drain gives up after a while; work goes on until it is stopped.

        The end of an item is recorded as soon as the file is free, however long that takes, until the grace period is
        over. Meanwhile the other slots do not give up either.
        """
        loop = self.loop
        for power in range(5):
            yield 0.05 * 2**power
        while True:
            is_stopped = loop.native.stopped
            goes_on = (loop.plan.stays or loop.unrecorded) and not is_stopped
            if not goes_on and not (is_recording and loop.unrecorded and not loop.must_end_now):
                return
            yield 0.1 if is_stopped else 5.0

    def maintain(self) -> Requests[None]:
        """Let retention and the checkpoint run, about once a minute."""
        loop = self.loop
        if time.monotonic() - loop.maintained_at >= MAINTAIN_EVERY:
            loop.maintained_at = time.monotonic()
            try:
                yield Call(loop.native.tend)
            except (QueueBusyError, StorageError) as error:
                told = fields("store_busy", phase="tend")
                logger.warning("membox_queue could not tidy up, and tries again later: %s", error, extra=told)


def results_of(
    items: Sequence[_native.Item], handled: Sequence[_native.Item], result: Any, batch: str | None
) -> list[Any]:
    """Return one result for each item: a batch gives a list of as many as it handled, or one value for all."""
    if batch and isinstance(result, list) and len(result) == len(handled):
        return result + [None] * (len(items) - len(handled))
    return [result] * len(items)
