"""The thread driver: runs the slots of a loop in threads, or one slot in the caller's own."""

from __future__ import annotations

import dataclasses
import inspect
import threading
import time
from typing import TYPE_CHECKING, Any

from membox_queue.errors import SimulatedCrash, note
from membox_queue.loops import interpreter_exit
from membox_queue.loops.loop import LONG_SLICE, SLICE
from membox_queue.loops.report import DrainReport
from membox_queue.loops.requests import Call, Handle, Wait
from membox_queue.loops.slot import Slot
from membox_queue.loops.stopping import GraceOver, Stopping

if TYPE_CHECKING:
    from collections.abc import Callable

    from membox_queue.loops.loop import Loop
    from membox_queue.loops.plan import Handler, Plan
    from membox_queue.loops.requests import Request

PLAIN = frozenset((dict, list, str, int, float, bool))
"""What most handlers return."""


def possible_now(plan: Plan) -> Plan:
    """Return the plan, with one slot while the interpreter exits: other threads claim nothing any more then."""
    return dataclasses.replace(plan, concurrency=1) if interpreter_exit.has_begun.is_set() else plan


def run(loop: Loop, *, in_threads: bool = False) -> DrainReport:
    """Run a loop. A single slot runs in the caller's thread, unless `in_threads`."""
    if loop.is_async:
        raise TypeError(
            "this loop calls the handler and does not await it; give it a plain function, or use AsyncQueue"
        )
    with loop.progress:
        try:
            if not loop.begin():
                return DrainReport(refused=True)
            grace = loop.plan.grace_seconds
            stopping = loop.stopping = Stopping(loop.native, loop.close, grace, loop.progress.stopping)
            loop.begun.set()
            if loop.stop_asked:
                stopping.stop()
        except BaseException:
            if loop.has_begun:
                loop.close()
            raise
        try:
            with stopping.listening():
                if in_threads or loop.plan.concurrency > 1:
                    run_threads(loop, stopping)
                else:
                    run_slot(loop, 0)
        except SimulatedCrash:
            loop.native.abandon()
            raise
        except BaseException as error:
            if not (type(error) is GraceOver and error.loop is stopping):
                # Claimed items and the lease are released first, but what ended the loop is what is raised.
                try:
                    loop.close()
                except Exception as failure:
                    note(error, f"membox_queue could not release everything: {failure}")
                raise
        loop.close()
    return loop.report()


def run_threads(loop: Loop, stopping: Stopping) -> None:
    """Run each slot in a thread of its own, while the caller's thread waits and handles signals."""
    failures: list[BaseException] = []
    alive = loop.plan.concurrency

    def serve(slot: int) -> None:
        nonlocal alive
        loop.threads.add(threading.get_ident())
        try:
            run_slot(loop, slot)
        except BaseException as error:
            failures.append(error)
            loop.stop()
        finally:
            loop.threads.discard(threading.get_ident())
            with loop.lock:
                alive -= 1
                if alive == 0:
                    stopping.ended.set()

    # They are daemons so that a handler that never returns cannot keep the interpreter from exiting.
    for slot in range(loop.plan.concurrency):
        threading.Thread(target=serve, args=(slot,), name=f"membox-queue-{slot}", daemon=True).start()
    # Python may begin a wait just after a signal came, and would then sleep on it.
    while not stopping.ended.wait(SLICE):
        pass
    if failures:
        raise failures[0]


def run_slot(loop: Loop, number: int) -> None:
    """Carry out the requests of a slot in this thread."""
    requests = Slot(loop, number).requests()
    answer: Any = None
    resume: Callable[[Any], Request] = requests.send
    while True:
        try:
            request = resume(answer)
        except StopIteration:
            return
        try:
            answer = carry_out(loop, request)
            resume = requests.send
        except Exception as error:
            answer, resume = error, requests.throw


def carry_out(loop: Loop, request: Request) -> Any:
    """Do what a slot asks for, and return the answer."""
    if isinstance(request, Handle):
        return handle(request.handler, request.argument)
    if isinstance(request, Call):
        return request.function(*request.arguments)
    if isinstance(request, Wait):
        is_main = threading.current_thread() is threading.main_thread()
        return loop.native.wait(request.slot, SLICE if is_main else LONG_SLICE)
    return pause(loop, request.seconds)


def handle(handler: Handler, argument: Any) -> tuple[BaseException | None, Any]:
    """Call a plain handler. Return what it raised, or None, and what it returned."""
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


def pause(loop: Loop, seconds: float) -> None:
    """Sleep in small slices, so that signals and a stop that comes meanwhile are seen."""
    deadline, was_stopped = time.monotonic() + seconds, loop.native.stopped
    while loop.native.stopped == was_stopped and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
