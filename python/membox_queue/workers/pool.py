"""Worker: one pool that serves several queues of a file."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.loops import interpreter_exit
from membox_queue.loops.loop import SLICE, Loop
from membox_queue.loops.plan import Plan, planned
from membox_queue.loops.threads import possible_now, run
from membox_queue.opening import close_queue, open_queue, resolved
from membox_queue.options import WorkerOptions
from membox_queue.signatures import shows

if TYPE_CHECKING:
    import os
    from typing import Literal, Self, Unpack

    from membox_queue.loops.handler import Registered
    from membox_queue.loops.plan import Handler
    from membox_queue.loops.report import DrainReport
    from membox_queue.options import ServedOptions


class Worker:
    """Serves several queues of one file with one pool.

    - `handlers`: the handler of each queue, by the queue's name. Other queues are not served.
    - `options`: the options of `Queue`, by queue. Settings among them are stored, as `Queue` does.
    - `concurrency`: how many items are handled at once, over all queues.
    - Other arguments are those of `Queue.work`, and for `drain` those of `Queue.drain`. No worker lease is taken.

    `with Worker(…):` serves in a thread for as long as the block runs.
    """

    @shows(WorkerOptions, lambda: Plan)
    def __init__(
        self,
        path: str | os.PathLike[str],
        handlers: Mapping[str, Handler | Registered[..., Any]],
        *,
        options: Mapping[str, ServedOptions] | None = None,
        batch: Literal["group"] | None = None,
        **plan: Unpack[WorkerOptions],
    ) -> None:
        if not isinstance(handlers, Mapping):
            raise TypeError(f"handlers must be a dict, from queue names to handlers, not {type(handlers).__qualname__}")
        unknown = set(options or {}) - set(handlers)
        if unknown:
            raise ValueError(f"options for queues without a handler: {', '.join(sorted(unknown))}")
        if not handlers:
            raise ValueError("a worker needs at least one queue with a handler")
        self.path = resolved(path)
        self.handlers = dict(handlers)
        self.options: dict[str, dict[str, Any]] = {name: {**(options or {}).get(name, {})} for name in handlers}
        self.plan = planned("Worker", WorkerOptions, plan, batch=batch, stays=True)
        self.lock = threading.Lock()
        self.loop: Loop | None = None
        self.thread: threading.Thread | None = None
        self.in_thread: Loop | None = None

    def run(self) -> DrainReport:
        """Serve until stopped by `stop`, SIGTERM or SIGINT. Return what was done."""
        return self._serve(self._begin(self.plan))

    def drain(self) -> DrainReport:
        """Handle what is due in all queues. Return what was done."""
        return self._serve(self._begin(dataclasses.replace(self.plan, stays=False)))

    def start(self) -> None:
        """Serve in a thread. Does nothing if the worker already serves; if it is stopping, it is started again.

        Raises the error that keeps it from serving, and the error that ended it before, if `stop` has not raised that.
        Raises RuntimeError in a handler of this worker while the worker is stopping.
        """
        while (loop := self._start_unless_alive()) is None:
            with self.lock:
                ending, thread = self.in_thread, self.thread
                is_serving = self.loop is ending
            if ending is None or thread is None:
                continue
            if is_serving and not ending.stop_asked and not ending.has_ended:
                return
            if threading.get_ident() in ending.threads:
                raise RuntimeError("a handler cannot start its worker: it is stopping, and waits for the handler")
            if not self._has_ended(thread, ending):
                raise RuntimeError("the worker cannot be started: the interpreter exits, and it has not ended yet")
        loop.begun.wait()
        if loop.stopping is None and isinstance(loop.outcome, BaseException):
            self.stop()

    def _start_unless_alive(self) -> Loop | None:
        with self.lock:
            if self.thread is not None and self.thread.is_alive():
                return None
            ended, self.thread, self.in_thread = self.in_thread, None, None
            # A report is left to the `stop` that asked for it.
            if ended is not None and isinstance(ended.outcome, BaseException):
                outcome, ended.outcome = ended.outcome, None
                raise outcome
            loop = self.in_thread = self._begin_locked(self.plan)
            self.thread = threading.Thread(target=self._keep, args=(loop,), name="membox-queue-worker", daemon=True)
            self.thread.start()
            return loop

    def stop(self) -> DrainReport | None:
        """Claim no more, wait for running handlers up to the grace period, and return what was done.

        Returns None if the worker was not started. In a handler it only requests the stop, and returns None. It also
        returns None for a `run` in another thread, which returns the report itself. Afterwards the worker may be
        started again. Raises the error that ended the worker, if there was one.
        """
        with self.lock:
            running, loop, thread = self.loop, self.in_thread, self.thread
        if running is not None:
            running.stop()
        if thread is None or loop is None or (running is not None and threading.get_ident() in running.threads):
            return None
        if not self._has_ended(thread, loop):
            return loop.report()
        with self.lock:
            if self.thread is thread:
                self.thread = self.in_thread = None
            outcome, loop.outcome = loop.outcome, None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _has_ended(self, thread: threading.Thread, loop: Loop) -> bool:
        """Wait for the end. While the interpreter exits, no other thread may be left to enforce the grace period."""
        while thread.is_alive() and not interpreter_exit.has_begun.is_set():
            thread.join(SLICE)
        deadline = time.monotonic() + loop.plan.grace_seconds
        while thread.is_alive() and time.monotonic() < deadline:
            thread.join(SLICE / 10)
        return not thread.is_alive()

    def _begin(self, plan: Plan) -> Loop:
        with self.lock:
            return self._begin_locked(plan)

    def _begin_locked(self, plan: Plan) -> Loop:
        if self.loop is not None:
            raise RuntimeError("this worker is running already")
        queues: list[_native.Queue] = []
        with contextlib.ExitStack() as opened:
            for name in self.handlers:
                queue = open_queue(_native.Queue, self.path, name, **self.options[name])
                opened.callback(close_queue, queue)
                queues.append(queue)
            self.loop = Loop(queues, list(self.handlers.values()), possible_now(plan))
            opened.pop_all()
        return self.loop

    def _serve(self, loop: Loop, *, in_threads: bool = False) -> DrainReport:
        try:
            return run(loop, in_threads=in_threads)
        finally:
            with self.lock:
                self.loop = None
            for queue in loop.queues:
                close_queue(queue)

    def _keep(self, loop: Loop) -> None:
        try:
            # A handler that never returns must not keep `stop` from doing so.
            loop.outcome = self._serve(loop, in_threads=True)
        except BaseException as error:
            loop.outcome = error
        finally:
            loop.begun.set()
