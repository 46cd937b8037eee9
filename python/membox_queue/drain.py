"""The loops: what a slot does, written once; threads carry it out here, tasks in `aio`."""

from __future__ import annotations

import functools
import gc
import inspect
import logging
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.errors import (
    CorruptDatabaseError,
    GiveUp,
    NotADatabaseError,
    PayloadTooLargeError,
    QueueBusyError,
    QueueError,
    ReadOnlyError,
    RetryLater,
    SimulatedCrash,
    StaleClaimError,
    StorageError,
    note,
)
from membox_queue.plan import check_call
from membox_queue.progress import LoopEvent, watcher
from membox_queue.stopping import GraceOver, Stopping

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from membox_queue.plan import Handler, Middleware, Plan

    Step = tuple[list[str], str, int, list[_native.Item]]
    Life = Generator[tuple[Any, ...], Any, None]

logger = logging.getLogger("membox_queue")

TEND_EVERY = 60.0
"""Seconds between two looks after retention and the log."""
OF_ANY = vars(BaseException)
"""The attributes of an exception as its base class defines them: what a subclass makes of them may raise."""
PLAIN = frozenset((dict, list, str, int, float, bool))
"""What most handlers return."""
SLICE = 0.5
"""A wait in native code comes back to Python at least this often; a signal ends it at once."""
LONG_SLICE = 10.0
"""The same in threads that signals do not reach."""


LEFT_OPEN = (
    "the handler left a write transaction open on the queue's file: another connection of this process still held the "
    "write lock when the end of the item was to be recorded; commit it or roll it back before the handler returns"
)


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a loop did.

    `failed` items came to rest as failed, `postponed` ones went back for an automatic retry, `retried` ones were
    brought back by `retry_failed` before the drain began, `released` ones were given back uncounted. `lost` ones had
    been taken over by somebody else when their end was to be recorded, `cancelled` ones had been cancelled. `refused`
    means that another live worker held the lease; everything else is zero then. `stopped` means that the loop was asked
    to end before it was done.
    """

    done: int = 0
    failed: int = 0
    postponed: int = 0
    retried: int = 0
    released: int = 0
    lost: int = 0
    cancelled: int = 0
    refused: bool = False
    stopped: bool = False


class HandlesItems:
    """Something that handles items with `handle`, whatever it does when it is called; `shape` is their type."""

    handle: Handler
    shape: Any = None


class Shift:
    """One run of a loop: what its slots share, whether they are threads or tasks."""

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
        self.tally: Counter[str] = Counter()
        self.tended_at = time.monotonic()
        self.lock = threading.Lock()
        self.tell = watcher(plan.progress, queues)
        self.crew: _native.Crew | None = None
        self.stopping: Stopping | None = None
        self.begun = threading.Event()
        self.threads: set[int] = set()
        self.stop_asked = False
        self.is_exiting = False
        # Items whose end could not be recorded yet, because the file is locked.
        self.unrecorded: set[_native.Item | None] = set()
        self.was_stopped = False
        self.has_ended = False
        # What came of it, for a loop that runs in a thread of its own.
        self.outcome: DrainReport | BaseException | None = None

    def begin(self) -> bool:
        """Take the worker lease if that is the plan; False when another live worker holds it."""
        plan, first = self.plan, self.queues[0]
        self.crew = first._begin_crew(
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
        if self.crew is None:
            return False
        if plan.retry_failed:
            self.retried = sum(queue.retry_failed() for queue in self.queues)
        return True

    @property
    def working(self) -> _native.Crew:
        """The native half, once the shift has begun."""
        assert self.crew is not None, "begin comes first"
        return self.crew

    def stop(self) -> None:
        """Claim no more; what is running has the grace to end. Also before the loop has begun."""
        self.stop_asked = True
        if self.stopping is not None:
            self.stopping.stop()
        elif self.crew is not None:
            self.crew.stop()

    def end(self) -> None:
        """Note whether somebody asked for the end, before it is brought about."""
        if not self.has_ended:
            self.has_ended = True
            self.was_stopped = self.working.stopped

    def close(self) -> None:
        """Give back what is still held."""
        self.end()
        given_back = self.working.close()
        with self.lock:
            self.tally["released"] += given_back

    def report(self) -> DrainReport:
        """What was done so far."""
        tally = self.tally
        return DrainReport(
            done=tally["done"],
            failed=tally["failed"],
            postponed=tally["postponed"],
            retried=self.retried,
            released=tally["released"],
            lost=tally["lost"],
            cancelled=tally["cancelled"],
            stopped=self.was_stopped,
        )

    # What a slot does, as requests to whoever runs it: ("call", function, arguments), ("handle", handler, argument),
    # ("wait", slot), ("pause", seconds). The answer to "handle" is the exception that was raised, or None, and what was
    # returned, or with an exception whether the task that ran it was cancelled.

    def life(self, slot: int) -> Life:
        """Claim, handle and record until there is nothing more to do."""
        is_batch, handlers, shapes, tell = self.plan.batch is not None, self.handlers, self.shapes, self.tell
        step: Step = yield from self.store("claim", None, self.working.next, slot)
        while step[1] != "over":
            if step[1] == "wait":
                while not (yield from self.insist("claim", None, ("wait", slot))):
                    yield from self.look_after()
                step = yield from self.store("claim", None, self.working.next, slot)
                continue
            _, _, number, items = step
            raised: BaseException | None = None
            result: Any = None
            fitting = items
            if shapes[number] is not None:
                raised, fitting = yield from self.fit(number, items)
            if tell:
                for item in items:
                    tell(LoopEvent("claimed", item))
            meaning = "failed"
            if raised is None:
                raised, result = yield ("handle", handlers[number], fitting if is_batch else items[0])
                if raised is not None:
                    meaning = _native.meaning(raised, bool(result))
                    if meaning in ("released", "crashed"):
                        raise raised
            if raised is None:
                step = yield from self.record(slot, items, results_of(items, fitting, result, self.plan.batch))
            elif meaning == "exited":
                yield from self.record_exit(slot, items, raised)
                raise raised
            else:
                step = yield from self.record_failure(slot, items, raised)
            if "lost" in step[0]:
                self.mourn((yield ("call", losses, (items, step[0]))))
            self.count(items, step[0])
            if time.monotonic() - self.tended_at >= TEND_EVERY:
                yield from self.look_after()

    def fit(
        self, number: int, items: list[_native.Item]
    ) -> Generator[tuple[Any, ...], Any, tuple[BaseException | None, list[_native.Item]]]:
        """Give the content its type. The first that does not fit fails, and what is behind it goes back.

        Says what is wrong with the first item of all, else what is left to handle.
        """
        queue, shape = self.queues[number], self.shapes[number]
        for place, item in enumerate(items):
            try:
                item._fit(shape)
            except BaseException as error:
                if _native.meaning(error) != "failed":
                    raise
                if place == 0:
                    return error, items
                self.complain(error, item, "handler")
                for later in reversed(items[place + 1 :]):
                    yield from self.store("finish", later, queue.release, later)
                yield from self.store("finish", item, queue.mark_failed, item, error)
                return None, items[:place]
        return None, items

    def record(self, slot: int, items: list[_native.Item], results: list[Any]) -> Generator[tuple[Any, ...], Any, Step]:
        """Record what the handler returned and claim the next, in one transaction."""
        crew = self.working

        def held_up() -> tuple[Any, ...]:
            """The handler's own writes are not committed, so its item is not done."""
            let_go(None)
            failure = QueueBusyError(LEFT_OPEN)
            self.log_failure(items[0], failure)
            self.complain(failure, items[0], "handler")
            return ("call", crew.failed, (slot, items, failure))

        step: Step
        try:
            step = yield from self.insist("finish", items[0], ("call", crew.done, (slot, results)), held_up)
        except (TypeError, ValueError, PayloadTooLargeError) as error:
            logger.warning("the result of item %d is not stored: %s", items[0].id, error)
            request = ("call", crew.done, (slot, [None] * len(items)))
            step = yield from self.insist("finish", items[0], request, held_up)
        return step

    def record_failure(
        self, slot: int, items: list[_native.Item], raised: BaseException
    ) -> Generator[tuple[Any, ...], Any, Step]:
        """Record what the handler raised and claim the next, in one transaction."""
        self.log_failure(items[0], raised)
        self.complain(raised, items[0], "handler")
        if self.working.held_up_by_this_process:
            let_go(raised)
        try:
            step: Step = yield from self.store("finish", items[0], self.working.failed, slot, items, raised)
            return step
        except QueueError as failure:
            raise failure from raised

    def record_exit(
        self, slot: int, items: list[_native.Item], leaving: BaseException
    ) -> Generator[tuple[Any, ...], Any, None]:
        """Count it against an item that its handler exited the program, as a lost claim is.

        One whose handler always does would otherwise come back for ever, and end every worker.
        """
        self.is_exiting = True
        self.working.stop()
        log(logging.WARNING, leaving, "the handler of item %d left the program", items[0].id)
        self.complain(leaving, items[0], "handler")
        if self.working.held_up_by_this_process:
            let_go(leaving)
        try:
            yield from self.store("finish", items[0], self.working.failed, slot, items, leaving)
        except QueueError as failure:
            note(leaving, f"membox_queue could not record it: {failure}")

    def log_failure(self, item: _native.Item, raised: BaseException) -> None:
        """Log what a handler raised: a warning, if nobody is told of it otherwise.

        What it asked for is no error, but may have one as its cause.
        """
        if issubclass(type(raised), RetryLater | GiveUp):
            asked = "put off" if issubclass(type(raised), RetryLater) else "given up"
            cause = OF_ANY["__cause__"].__get__(raised)
            log(logging.INFO, cause, "item %d %s: %s", item.id, asked, raised)
            return
        is_told = self.plan.on_error is not None or self.tell
        level = logging.INFO if is_told else logging.WARNING
        log(level, raised, "item %d failed: %s", item.id, type(raised).__qualname__)

    def store(
        self, phase: str, item: _native.Item | None, verb: Callable[..., Any], *arguments: Any
    ) -> Generator[tuple[Any, ...], Any, Any]:
        """Call a step of the crew, or a verb; when the store is busy or out of space, wait and try again."""
        return (yield from self.insist(phase, item, ("call", verb, arguments)))

    def insist(
        self,
        phase: str,
        item: _native.Item | None,
        request: tuple[Any, ...],
        held_up: Callable[[], tuple[Any, ...]] | None = None,
    ) -> Generator[tuple[Any, ...], Any, Any]:
        """Ask for something that needs the store, again and again if it must be.

        When another connection of this very process keeps the file locked, `held_up` gives what to ask for instead.
        """
        pauses: Iterator[float] | None = None
        is_recording = phase == "finish"
        while True:
            try:
                answer = yield request
                self.unrecorded.discard(item)
                return answer
            except (CorruptDatabaseError, NotADatabaseError, ReadOnlyError):
                raise
            except (QueueBusyError, StorageError) as error:
                is_busy = isinstance(error, QueueBusyError)
                if held_up is not None and is_busy and self.working.held_up_by_this_process:
                    request, held_up = held_up(), None
                level = logging.WARNING if pauses is None else logging.INFO
                logger.log(level, "membox_queue could not %s, and tries again: %s", phase, error)
                self.complain(error, item, phase)
                if is_recording and is_busy:
                    self.unrecorded.add(item)
                pauses = pauses or self.pauses(is_recording=is_recording)
                pause = next(pauses, None)
                if pause is None:
                    self.unrecorded.discard(item)
                    raise
            yield ("pause", pause)

    def pauses(self, *, is_recording: bool) -> Iterator[float]:
        """Growing pauses. A drain gives up after a while, work goes on until it is stopped.

        But what came of an item is recorded as soon as the file is free, however long that takes: until the grace is
        over. Meanwhile the other slots do not give up either.
        """
        for power in range(5):
            yield 0.05 * 2**power
        while True:
            is_stopped = self.working.stopped
            goes_on = (self.plan.stays or self.unrecorded) and not is_stopped
            if not goes_on and not (is_recording and self.unrecorded and not self.is_leaving):
                return
            yield 0.1 if is_stopped else 5.0

    @property
    def is_leaving(self) -> bool:
        """Whether the loop ends now, with or without what was to be recorded."""
        return self.is_exiting or (self.stopping is not None and self.stopping.is_over)

    def look_after(self) -> Generator[tuple[Any, ...], Any, None]:
        """Let retention and the log be looked after, about once a minute."""
        if time.monotonic() - self.tended_at >= TEND_EVERY:
            self.tended_at = time.monotonic()
            try:
                yield ("call", self.working.tend, ())
            except (QueueBusyError, StorageError) as error:
                logger.warning("membox_queue could not tidy up, and tries again later: %s", error)

    def count(self, items: Sequence[_native.Item], settled: Iterable[Any]) -> None:
        """Count what became of items, and tell whoever wants to know."""
        for item, word in zip(items, settled, strict=False):
            with self.lock:
                self.tally[word] += 1
            if self.tell:
                self.tell(LoopEvent(word, item))

    def mourn(self, lost: Iterable[tuple[_native.Item, StaleClaimError]]) -> None:
        """Tell of claims that were lost before their end was recorded."""
        for item, loss in lost:
            logger.warning("%s", loss)
            self.complain(loss, item, "lost")

    def complain(self, error: BaseException, item: _native.Item | None, phase: str) -> None:
        """Tell `on_error`; what it raises itself is logged and goes no further."""
        if self.plan.on_error is None:
            return
        try:
            self.plan.on_error(error, item, phase)
        except BaseException as raised:
            if _native.meaning(raised) != "failed":
                raise
            log(logging.ERROR, raised, "on_error raised")


def log(level: int, error: BaseException | None, message: str, *arguments: Any) -> None:
    """Log what was raised, with its traceback; one whose attributes raise is logged without."""
    try:
        logger.log(level, message, *arguments, exc_info=error)
    except BaseException as raised:
        if _native.meaning(raised) != "failed":
            raise
        plain = [each if type(each) in (int, str) else type(each).__name__ for each in arguments]
        logger.log(level, message, *plain)


def let_go(raised: BaseException | None) -> None:
    """Let go of what a handler left behind: a connection that only its frames, or a cycle, keep open.

    While that has an open transaction nothing can be recorded, and a traceback keeps the frames for as long as the
    exception is needed.
    """
    chain, known = [raised], set[int]()
    while chain:
        error = chain.pop()
        if error is not None and id(error) not in known:
            known.add(id(error))
            traceback.clear_frames(OF_ANY["__traceback__"].__get__(error))
            chain += [OF_ANY["__cause__"].__get__(error), OF_ANY["__context__"].__get__(error)]
    gc.collect()


def losses(items: Sequence[_native.Item], settled: Sequence[str]) -> list[tuple[_native.Item, StaleClaimError]]:
    """Which claims were lost, and what became of each, asked of the file."""
    return [(item, loss_of(item)) for item, word in zip(items, settled, strict=False) if word == "lost"]


def loss_of(item: _native.Item) -> StaleClaimError:
    """What became of a claim that was lost."""
    try:
        item.check()
    except StaleClaimError as error:
        return error
    except QueueError:
        pass
    return StaleClaimError(f"the claim on item {item.id} was lost before its end was recorded")


def shape_for(queue: _native.Queue, handler: Any) -> Any:
    """The type of the items that a handler is to get from a queue."""
    wanted = handler.shape if isinstance(handler, HandlesItems) else None
    if queue._shape is not None and wanted is not None and queue._shape.type != wanted.type:
        raise TypeError(f"the queue {queue.name!r} holds {queue._shape.name}, and its handler takes {wanted.name}")
    return queue._shape or wanted


def wrapped(handler: Handler, middleware: Sequence[Middleware]) -> Handler:
    """Put middleware around a handler; the first of the list is the outermost."""
    for layer in reversed(list(middleware)):
        handler = layered(layer, handler)
    return handler


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    function = handler.handle if isinstance(handler, HandlesItems) else handler
    function = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def layered(layer: Middleware, inner: Handler) -> Handler:
    """Put one layer around a handler."""
    return lambda argument: layer(argument, inner)


def results_of(
    items: Sequence[_native.Item], handled: Sequence[_native.Item], result: Any, batch: str | None
) -> list[Any]:
    """One result an item: a batch gives a list of as many as it handled, or one value for all."""
    if batch and isinstance(result, list) and len(result) == len(handled):
        return result + [None] * (len(items) - len(handled))
    return [result] * len(items)


def handle(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """Call a plain handler; what it raised, as a value, or what it returned."""
    try:
        result = handler(argument)
    except BaseException as error:
        return error, None
    if result is None or type(result) in PLAIN:
        return None, result
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        kind = type(result).__name__
        return TypeError(f"the handler returned a {kind}, which is not run here; give it a plain function"), None
    return None, result


def live(shift: Shift, slot: int) -> None:
    """Carry out a slot's requests in this thread."""
    life = shift.life(slot)
    answer: Any = None
    resume: Callable[[Any], tuple[Any, ...]] = life.send
    while True:
        try:
            request = resume(answer)
        except StopIteration:
            return
        try:
            kind = request[0]
            if kind == "handle":
                answer = handle(request[1], request[2])
            elif kind == "call":
                answer = request[1](*request[2])
            elif kind == "wait":
                answer = shift.working.wait(request[1], SLICE if shift.plan.concurrency == 1 else LONG_SLICE)
            else:
                answer = None
                pause(shift, request[1])
            resume = life.send
        except Exception as error:
            answer, resume = error, life.throw


def pause(shift: Shift, seconds: float) -> None:
    """Sleep in small slices, so that signals and a stop that comes meanwhile are seen."""
    deadline, was_stopped = time.monotonic() + seconds, shift.working.stopped
    while shift.working.stopped == was_stopped and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))


def run(shift: Shift, *, in_threads: bool = False) -> DrainReport:
    """Run a loop with threads; one slot needs none, and runs in the caller's unless told otherwise."""
    if shift.is_async:
        raise TypeError(
            "this loop calls the handler and does not await it; give it a plain function, or use AsyncQueue"
        )
    with shift.tell:
        try:
            if not shift.begin():
                return DrainReport(refused=True)
            stopping = shift.stopping = Stopping(shift.working, shift.close, shift.plan.patience, shift.tell.stopping)
            shift.begun.set()
            if shift.stop_asked:
                stopping.stop()
        except BaseException:
            if shift.crew is not None:
                shift.close()
            raise
        try:
            with stopping.listening():
                if in_threads or shift.plan.concurrency > 1:
                    run_threads(shift, stopping)
                else:
                    live(shift, 0)
        except SimulatedCrash:
            shift.working.abandon()
            raise
        except BaseException as error:
            if not (type(error) is GraceOver and error.loop is stopping):
                # What is still in hand goes back uncounted, and the lease is free; what ended the loop matters more.
                try:
                    shift.close()
                except Exception as failure:
                    note(error, f"membox_queue could not give everything back: {failure}")
                raise
        shift.close()
    return shift.report()


def run_threads(shift: Shift, stopping: Stopping) -> None:
    """Run each slot in a thread of its own; the caller's waits, and listens to signals."""
    failures: list[BaseException] = []
    alive = shift.plan.concurrency

    def serve(slot: int) -> None:
        nonlocal alive
        shift.threads.add(threading.get_ident())
        try:
            live(shift, slot)
        except BaseException as error:
            failures.append(error)
            shift.stop()
        finally:
            shift.threads.discard(threading.get_ident())
            with shift.lock:
                alive -= 1
                if alive == 0:
                    stopping.left.set()

    # They are daemons so that a handler that never returns cannot keep the interpreter from exiting.
    for slot in range(shift.plan.concurrency):
        threading.Thread(target=serve, args=(slot,), name=f"membox-queue-{slot}", daemon=True).start()
    # Python may begin a wait just after a signal came, and would then sleep on it.
    while not stopping.left.wait(SLICE):
        pass
    if failures:
        raise failures[0]
