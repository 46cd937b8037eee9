"""A detached worker process, which exists only while there is work."""

from __future__ import annotations

import contextlib
import json
import math
import os
import site
import subprocess
import sys
import sysconfig
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue.errors import QueueError
from membox_queue.loops.loop import HandlesItems
from membox_queue.opening import reopen_options
from membox_queue.wire import settings
from membox_queue.workers.names import check_handler, imported, type_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from membox_queue.loops.handler import Registered

LOG_BYTES = 1 << 20
"""A worker's log is renamed when it is larger than this."""
STARTING = 10.0
"""Seconds a spawned worker has to begin before another may be spawned."""
IMPORTING = 600.0
"""Seconds a spawned worker that has begun has to import its handler."""


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
    # -P: the worker does not import from its working directory, unless this process does.
    command = [sys.executable, "-P", "-m", "membox_queue", "process", handler]
    command += ["--db", str(queue.path), "--queue", queue.name, "--settings", settings_of(queue)]
    command += ["--linger", str(seconds), "--concurrency", str(concurrency), *["--retry-failed"] * retry_failed]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(import_paths())}
    return launch(queue, queue.path, lambda announcement: [*command, "--announced", announcement], environment)


def import_paths() -> list[str]:
    """Return this process's import path without what an interpreter finds by itself.

    The worker must find the handler's module as this process does, but programs that a handler starts inherit the path.
    """
    library = sysconfig.get_path("stdlib")
    zipped = "python{}{}.zip".format(*sys.version_info)
    known = {library, sysconfig.get_path("platstdlib"), os.path.join(os.path.dirname(library), zipped)}
    known |= {os.path.join(path, "lib-dynload") for path in known}
    known |= {*site.getsitepackages(), site.getusersitepackages()}
    return [path for path in dict.fromkeys(entry or os.getcwd() for entry in sys.path) if path not in known]


def launch(queue: _native.Queue, path: Path, command: Callable[[str], list[str]], environment: dict[str, str]) -> bool:
    """Start a detached worker unless one is running or starting. Return whether one was started."""
    # The log first: once a worker is announced, no other process starts one for a while.
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
    threading.Thread(target=reap, args=arguments, name="membox-queue-spawned", daemon=True).start()
    return True


def reap(process: subprocess.Popen[bytes], path: Path, name: str, announcement: str) -> None:
    """Wait for a worker to end, so that it leaves no zombie. If it never began, withdraw its announcement."""
    process.wait()
    with contextlib.suppress(QueueError, OSError):
        # A file that was removed meanwhile stays removed.
        if _native.has_queue(path):
            with contextlib.closing(_native.Queue(path, name)) as queue:
                queue._withdraw_worker(announcement)


@contextlib.contextmanager
def announced(path: str | os.PathLike[str], name: str, announcement: str) -> Iterator[None]:
    """In the announced worker: keep others from being spawned while it imports its handler and runs."""
    with contextlib.ExitStack() as here:
        if _native.has_queue(path):
            queue = here.enter_context(contextlib.closing(_native.Queue(path, name)))
            queue._confirm_worker(announcement, IMPORTING)
        yield


def log_path(path: Path) -> Path:
    """Return the file that a spawned worker writes its output to."""
    return path.with_name(path.name + ".worker.log")


def open_log(path: Path) -> Any:
    """Open a worker's log for appending, readable by its owner alone; a large one is renamed first."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    return open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


def settings_of(queue: _native.Queue) -> str:
    """Return the options of a queue as the JSON that a spawned worker is given."""
    return json.dumps(settings.to_json(reopen_options(queue)) | type_named(queue))


def settings_from(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the options that `settings_of` wrote, with the type imported."""
    made = settings.from_json({name: value for name, value in plain.items() if name != "type"})
    return {**made, "type": imported(plain["type"])} if "type" in plain else made
