"""Workers: one pool for several queues, and a detached process that exists only while there is work."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import json
import math
import os
import site
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from membox_queue import _native, leaving
from membox_queue.drain import SLICE, DrainReport, HandlesItems, Shift, run
from membox_queue.errors import QueueError
from membox_queue.options import WorkerOptions
from membox_queue.plan import Plan, planned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Literal, Self, Unpack

    from membox_queue.handler import Registered
    from membox_queue.options import ServedOptions
    from membox_queue.plan import Handler

LOG_BYTES = 1 << 20
"""A worker's log is set aside when it is larger than this."""
STARTING = 10.0
"""Seconds a spawned worker has to begin before another may be spawned."""
IMPORTING = 600.0
"""Seconds a spawned worker that has begun has to import its handler."""

MOVE = "move it into a module of its own, and import it from there"


class Worker:
    """Serves several queues of one file with one pool.

    `handlers` gives each queue its handler; queues that are not named are left alone. `concurrency` items are handled
    at once, whichever queue they come from. `options` are those of `Queue`, by queue; what `configure` has stored
    holds anyway. Other arguments are those of `Queue.work`, and for `drain` those of `Queue.drain`; the worker lease is
    not taken. `with Worker(…):` serves in a thread for as long as the block runs.
    """

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
        self.path = path
        self.handlers = dict(handlers)
        self.options: dict[str, dict[str, Any]] = {name: {**(options or {}).get(name, {})} for name in handlers}
        self.plan = planned("Worker", WorkerOptions, plan, batch=batch, stays=True)
        self.lock = threading.Lock()
        self.shift: Shift | None = None
        self.thread: threading.Thread | None = None
        self.in_thread: Shift | None = None

    def run(self) -> DrainReport:
        """Serve until stopped by `stop`, SIGTERM or SIGINT; say what was done."""
        return self._serve(self._begin(self.plan))

    def drain(self) -> DrainReport:
        """Handle what is due in all queues, then return; say what was done."""
        return self._serve(self._begin(dataclasses.replace(self.plan, stays=False)))

    def start(self) -> None:
        """Serve in a thread of its own; does nothing if it does already. One that is stopping is started again.

        Raises what keeps it from serving, and what ended it before, if `stop` has not. A handler cannot start its own
        worker again while that is stopping: RuntimeError.
        """
        while (shift := self._start_unless_alive()) is None:
            with self.lock:
                ending, thread = self.in_thread, self.thread
                is_serving = self.shift is ending
            if ending is None or thread is None:
                continue
            if is_serving and not ending.stop_asked and not ending.has_ended:
                return
            if threading.get_ident() in ending.threads:
                raise RuntimeError("a handler cannot start its worker: it is stopping, and waits for the handler")
            if not self._has_ended(thread, ending):
                raise RuntimeError("the worker cannot be started: the interpreter exits, and it has not ended yet")
        shift.begun.wait()
        if shift.stopping is None and isinstance(shift.outcome, BaseException):
            self.stop()

    def _start_unless_alive(self) -> Shift | None:
        with self.lock:
            if self.thread is not None and self.thread.is_alive():
                return None
            ended, self.thread, self.in_thread = self.in_thread, None, None
            # A report is left to the `stop` that asked for it.
            if ended is not None and isinstance(ended.outcome, BaseException):
                outcome, ended.outcome = ended.outcome, None
                raise outcome
            shift = self.in_thread = self._begin_locked(self.plan)
            self.thread = threading.Thread(target=self._keep, args=(shift,), name="membox-queue-worker", daemon=True)
            self.thread.start()
            return shift

    def stop(self) -> DrainReport | None:
        """Claim no more, let what runs end within the grace, and say what was done; None if it was not started.

        A handler may call it too: then it only asks, and returns None, as it does for a `run` of another thread, which
        returns the report itself. Afterwards it may be started again. What ended it before, if anything, is raised.
        """
        with self.lock:
            running, shift, thread = self.shift, self.in_thread, self.thread
        if running is not None:
            running.stop()
        if thread is None or shift is None or (running is not None and threading.get_ident() in running.threads):
            return None
        if not self._has_ended(thread, shift):
            return shift.report()
        with self.lock:
            if self.thread is thread:
                self.thread = self.in_thread = None
            outcome, shift.outcome = shift.outcome, None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _has_ended(self, thread: threading.Thread, shift: Shift) -> bool:
        """Wait for the end. While the interpreter exits, nobody else may be there to see to the grace."""
        while thread.is_alive() and not leaving.has_begun.is_set():
            thread.join(SLICE)
        deadline = time.monotonic() + shift.plan.patience
        while thread.is_alive() and time.monotonic() < deadline:
            thread.join(SLICE / 10)
        return not thread.is_alive()

    def _begin(self, plan: Plan) -> Shift:
        with self.lock:
            return self._begin_locked(plan)

    def _begin_locked(self, plan: Plan) -> Shift:
        if self.shift is not None:
            raise RuntimeError("this worker is running already")
        from membox_queue.queue import Queue

        queues: list[_native.Queue] = []
        with contextlib.ExitStack() as opened:
            for name in self.handlers:
                queue = Queue(self.path, name, **self.options[name])
                opened.callback(queue.close)
                queues.append(queue)
            self.shift = Shift(queues, list(self.handlers.values()), possible_now(plan))
            opened.pop_all()
        return self.shift

    def _serve(self, shift: Shift, *, in_threads: bool = False) -> DrainReport:
        try:
            return run(shift, in_threads=in_threads)
        finally:
            with self.lock:
                self.shift = None
            for queue in shift.queues:
                queue.close()

    def _keep(self, shift: Shift) -> None:
        try:
            # A handler that never returns must not keep `stop` from doing so.
            shift.outcome = self._serve(shift, in_threads=True)
        except BaseException as error:
            shift.outcome = error
        finally:
            shift.begun.set()


def possible_now(plan: Plan) -> Plan:
    """The plan, or the same with one slot while the interpreter exits: other threads claim nothing any more then."""
    return dataclasses.replace(plan, concurrency=1) if leaving.has_begun.is_set() else plan


def spawn(
    queue: _native.Queue,
    handler: str | Registered[..., Any],
    *,
    linger: float | timedelta = 300.0,
    concurrency: int = 1,
    retry_failed: bool = False,
) -> bool:
    """See `Queue.spawn_worker`."""
    if queue.path is None:
        raise ValueError("an in-memory queue lives in one process; a worker needs a file")
    if isinstance(handler, HandlesItems):
        handler = f"{handler.__module__}:{handler.__qualname__}"
    check_handler(handler)
    seconds = linger.total_seconds() if isinstance(linger, timedelta) else float(linger)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"linger must be a number of seconds, zero or more, not {linger}")
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    if queue.worker_is_alive():
        return False
    settings = json.dumps(encoded(queue._given) | type_named(queue))
    # What lies in the working directory is none of its modules, unless it is one of ours.
    command = [sys.executable, "-P", "-m", "membox_queue", "process", handler]
    command += ["--db", str(queue.path), "--queue", queue.name, "--settings", settings]
    command += ["--linger", str(seconds), "--concurrency", str(concurrency), *["--retry-failed"] * retry_failed]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths_of_our_own())}
    return launch(queue, queue.path, lambda announcement: [*command, "--announced", announcement], environment)


def paths_of_our_own() -> list[str]:
    """Where modules are found here, less what the interpreter knows by itself.

    The handler's module must be found there as it is here, but other interpreters that a handler runs inherit this too.
    """
    library = sysconfig.get_path("stdlib")
    zipped = "python{}{}.zip".format(*sys.version_info)
    known = {library, sysconfig.get_path("platstdlib"), os.path.join(os.path.dirname(library), zipped)}
    known |= {os.path.join(path, "lib-dynload") for path in known}
    known |= {*site.getsitepackages(), site.getusersitepackages()}
    return [path for path in dict.fromkeys(entry or os.getcwd() for entry in sys.path) if path not in known]


def launch(queue: _native.Queue, path: Path, command: Callable[[str], list[str]], environment: dict[str, str]) -> bool:
    """Start a detached worker, unless one is alive or on its way; say whether."""
    # The log first: once a worker is announced, nobody else starts one for a while.
    with open_log(log_path(path)) as log:
        announcement = queue._announce_worker(STARTING)
        if announcement is None:
            return False
        try:
            process = subprocess.Popen(
                command(announcement),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )
        except BaseException:
            queue._withdraw_worker(announcement)
            raise
    arguments = (process, path, queue.name, announcement)
    threading.Thread(target=see_off, args=arguments, name="membox-queue-spawned", daemon=True).start()
    return True


def see_off(process: subprocess.Popen[bytes], path: Path, name: str, announcement: str) -> None:
    """Take note of a worker's end: it leaves the process table, and one that never began keeps nobody from spawning."""
    process.wait()
    with contextlib.suppress(QueueError, OSError):
        # A file that was removed meanwhile stays removed.
        if _native.has_queue(path):
            with contextlib.closing(_native.Queue(path, name)) as queue:
                queue._withdraw_worker(announcement)


@contextlib.contextmanager
def arriving(path: str | os.PathLike[str], name: str, announcement: str) -> Iterator[None]:
    """In the worker that was announced: nobody else is spawned while it imports what it needs, and lives."""
    with contextlib.ExitStack() as here:
        if _native.has_queue(path):
            queue = here.enter_context(contextlib.closing(_native.Queue(path, name)))
            queue._confirm_worker(announcement, IMPORTING)
        yield


def check_spawn(queue: _native.Queue, handler: str) -> None:
    """Refuse a worker that could not begin, before anything is written for it."""
    check_handler(handler)
    type_named(queue)


def check_handler(handler: str) -> None:
    """Refuse a name that no worker could import."""
    module, _, name = handler.partition(":") if isinstance(handler, str) else ("", "", "")
    if callable(handler) and hasattr(handler, "__qualname__"):
        its_name = f"{handler.__module__}:{handler.__qualname__}"
        raise ValueError(f"a worker is another process and finds its handler by its name: give {its_name!r}")
    if not module or not name:
        raise ValueError(f"a worker's handler is named 'package.module:function', not {handler!r}")
    if module == "__main__":
        raise ValueError(f"{handler!r} is in the program that runs, which a worker cannot import; {MOVE}")
    if module.endswith(".py"):
        raise ValueError(f"a worker's handler is named by its module, not its file: 'package.module:{name}'")
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ValueError(f"the module of {handler!r} cannot be found: {error}") from error
    if found is None:
        raise ValueError(f"the module of {handler!r} cannot be found; is it importable where you run this?")


def load_handler(handler: str) -> Callable[[Any], Any]:
    """Import what 'package.module:function' names."""
    check_handler(handler)
    module, _, name = handler.partition(":")
    loaded: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(loaded, part):
            raise ValueError(f"{module} has no {name}")
        loaded = getattr(loaded, part)
    if isinstance(getattr(loaded, "_handlers", None), dict):
        loaded = registered(handler, loaded)
    if not callable(loaded):
        raise ValueError(f"{handler!r} is not callable")
    return loaded  # type: ignore[no-any-return]


def registered(name: str, queue: Any) -> Any:
    """The one handler that was registered with a queue."""
    handlers = list(queue._handlers.values())
    if len(handlers) != 1:
        known = ", ".join(f"{handler.__module__}:{handler.__qualname__}" for handler in handlers) or "none"
        raise ValueError(f"{name!r} is a queue, and must have one handler to be served by its name; it has: {known}")
    return handlers[0]


def place_of(handler: Any, db: Any, name: str | None) -> tuple[Any, str, dict[str, Any]]:
    """Where the queue is that a handler serves, and the options that say what it holds.

    A registered handler knows; what is said counts more.
    """
    from membox_queue import handler as handlers
    from membox_queue.queue import shape_of

    if not isinstance(handler, handlers.Handler | handlers.AsyncHandler):
        wanted = handlers.type_wanted(handler)
        try:
            shape_of(wanted)
        except TypeError as error:
            raise ValueError(f"the handler cannot be served: {error}") from error
        return db or "memory.db", name or "ingest", {"type": wanted}
    own = handler.queue
    if db is None and own.path is None:
        raise ValueError(f"{handler.__name__} was registered with a queue in memory; say which file to serve")
    return db or own.path, name or own.name, dict(own._given)


def log_path(path: Path) -> Path:
    """Where a spawned worker writes what it has to say."""
    return path.with_name(path.name + ".worker.log")


def open_log(path: Path) -> Any:
    """Open a worker's log for appending, readable by its owner alone; a large one is set aside first."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    return open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def encoded(given: dict[str, Any]) -> dict[str, Any]:
    """What a queue was opened with, as JSON."""
    plain: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, _native.Retry):
            plain[name] = {part: getattr(value, part) for part in ("max", "base", "factor", "cap", "jitter", "kind")}
        elif isinstance(value, _native.Rate):
            plain[name] = {"count": value.count, "per": value.per}
        elif value is not None and value != math.inf:
            plain[name] = value
    return plain


def type_named(queue: _native.Queue) -> dict[str, Any]:
    """The type of a queue's content, by a name that another process can import."""
    if queue._shape is None:
        return {}
    kind = queue._shape.type
    name = f"{kind.__module__}:{kind.__qualname__}" if isinstance(kind, type) else ""
    try:
        found = bool(name) and imported(name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if name.startswith("__main__:"):
        said = f"the type {queue._shape.name} is defined in the program that runs, which a worker cannot import; {MOVE}"
        raise ValueError(said)
    if found is not kind:
        raise ValueError(f"a worker cannot import the type {queue._shape.name}; make it a class of a module")
    return {"type": name}


def imported(name: str) -> Any:
    """What 'package.module:name' stands for."""
    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


def decoded(plain: dict[str, Any]) -> dict[str, Any]:
    """The same backwards."""
    made: dict[str, Any] = {}
    for name, value in plain.items():
        if name == "type":
            made[name] = imported(value)
        elif name == "retry":
            made[name] = _native.Retry(**value)
        elif name in ("rate", "group_rate"):
            made[name] = _native.Rate(**value)
        else:
            made[name] = value
    return made
