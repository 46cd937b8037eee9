"""Queue: Python manners over the native class."""

from __future__ import annotations

import functools
import secrets
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from membox_queue import _native, leaving, worker  # noqa: F401 - leaving acts when it is imported
from membox_queue.drain import Plan, Shift, run
from membox_queue.errors import QueueError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Literal, Self

    from membox_queue.drain import DrainReport, Middleware, OnError
    from membox_queue.progress import Progress


class Queue(_native.Queue):
    """A named queue in an SQLite file.

    One object serves all threads. Every verb that needs the file waits for other writers by itself; see
    `membox_queue._native` for what each one promises.
    """

    def enqueue_file(
        self,
        path: str | os.PathLike[str],
        *,
        project: str | None = None,
        source_path: str | os.PathLike[str] | None = None,
        doc_date: str | date | None = None,
        **options: Any,
    ) -> int:
        """Enqueue the text of a file, with what the file says about itself.

        The content is read as UTF-8 now, so later changes of the file do not matter. Unless given, `source_path` is
        the resolved path, `project` the name of the enclosing git repository (else of the directory), and `doc_date`
        the day the file was last changed. Other options are those of `enqueue`.

        Raises FileNotFoundError when there is no such file and ValueError when it is not UTF-8; nothing is written
        then.
        """
        found = document(path)
        given = {"project": project, "source_path": source_path, "doc_date": doc_date}
        found |= {name: value for name, value in given.items() if value is not None}
        return self.enqueue(**found, **options)

    def drain(
        self,
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        retry_failed: bool = False,
        exclusive: bool = True,
        limit: int | None = None,
        linger: float | timedelta = 0.0,
        progress: Progress = None,
        batch: Literal["group"] | None = None,
        grace: float = 30.0,
        max_runtime: float | timedelta | None = None,
        middleware: Sequence[Middleware] = (),
        on_error: OnError | None = None,
    ) -> DrainReport:
        """Claim and handle items until nothing is due, then return.

        Takes the worker lease first; when another live worker holds it, returns at once with `refused`. With
        `exclusive=False` no lease is taken, and many processes may drain together. `concurrency` items are handled at
        once, each in a thread; a single one in the caller's own. `limit` bounds how many items are taken. `linger`
        stays while something falls due within that time: a delayed item, a retry, a schedule's tick, a rate's slot.
        With `retry_failed`, failed items below their ceiling are brought back first. `batch="group"` hands the handler
        a list: everything pending of one group, or one item that has none.

        The handler's JSON return value becomes the result. An exception fails the item and the loop goes on;
        `RetryLater` and `GiveUp` say more. Claim and lease are kept alive by a native thread however long the handler
        runs, or as long as `max_runtime` says. `middleware` is a list of callables `(item, call_next)` around the
        handler, `on_error(exception, item, phase)` is told what went wrong (phases: claim, handler, finish, lost), and
        `progress` is True for a bar on a terminal, or a callable that is given `LoopEvent`s.

        In the main thread SIGINT and SIGTERM end the loop like `stop()`: nothing more is claimed, what runs has
        `grace` seconds to end, what is left then is given back uncounted, and the report says `stopped`. A second
        signal leaves at once, with everything given back. KeyboardInterrupt and SystemExit raised by a handler give
        the item back uncounted and propagate. A store that is busy or full is tried again for some seconds.
        """
        return self._loop(
            handler,
            Plan(
                concurrency=concurrency,
                retry_failed=retry_failed,
                exclusive=exclusive,
                limit=limit,
                linger=linger,
                progress=progress,
                batch=batch,
                grace=grace,
                max_runtime=max_runtime,
                middleware=middleware,
                on_error=on_error,
            ),
        )

    def work(
        self,
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        limit: int | None = None,
        progress: Progress = None,
        batch: Literal["group"] | None = None,
        grace: float = 30.0,
        max_runtime: float | timedelta | None = None,
        middleware: Sequence[Middleware] = (),
        on_error: OnError | None = None,
    ) -> DrainReport:
        """Claim and handle items until stopped by `stop()`, SIGTERM or SIGINT, sleeping while there is nothing to do.

        No worker lease is taken: any number of processes may work. A new item is handled about a millisecond after its
        commit, whichever process made it. With `limit`, ends after so many items. Everything else is as in `drain`,
        but a store that is busy or full is tried again for as long as the loop runs.
        """
        return self._loop(
            handler,
            Plan(
                stays=True,
                concurrency=concurrency,
                limit=limit,
                progress=progress,
                batch=batch,
                grace=grace,
                max_runtime=max_runtime,
                middleware=middleware,
                on_error=on_error,
            ),
        )

    def stop(self) -> None:
        """End the loops that run on this object, from another thread or from a handler."""
        for shift in tuple(self._shifts):
            shift.stop()

    def spawn_worker(
        self, handler: str, *, linger: float | timedelta = 300.0, concurrency: int = 1, retry_failed: bool = False
    ) -> bool:
        """Start a detached process that drains this queue, unless a worker is alive or on its way; say whether.

        `handler` names a function, `"package.module:function"`, importable there as it is here. The process has a
        session of its own, this object's settings, writes to `<file>.worker.log`, and leaves when nothing is due within
        `linger` seconds. Call it after enqueueing, or give `spawn=` to `enqueue`: a worker that is alive when you ask
        has yet to look for the last time.
        """
        return worker.spawn(self, handler, linger=linger, concurrency=concurrency, retry_failed=retry_failed)

    @functools.cached_property
    def _shifts(self) -> set[Shift]:
        return set()

    def _loop(self, handler: Callable[[Any], Any], plan: Plan) -> DrainReport:
        shift = Shift([self], [handler], plan)
        self._shifts.add(shift)
        try:
            return run(shift)
        finally:
            self._shifts.discard(shift)

    def coverage_note(self) -> str | None:
        """Say how many items are still to come, for the foot of a query's answer; None when nothing is pending."""
        count = self.pending()
        if count == 0:
            return None
        return f"{count} {'ingest' if count == 1 else 'ingests'} pending — results may be incomplete"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        try:
            self.close()
        except QueueError as failure:
            if error is None:
                raise
            error.add_note(f"membox_queue could not close cleanly: {failure}")

    def __reduce__(self) -> tuple[Callable[..., Queue], tuple[Any, ...]]:
        if self.path is None:
            raise TypeError("an in-memory queue lives in one process and cannot be pickled; use a file")
        return _reopen, (type(self), str(self.path), self.name, self._given)

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return f"<Queue {self.name!r} in {str(self.path or ':memory:')!r}{state}>"


def new_key(prefix: str) -> str:
    """Make a readable key that nobody else has made: `discord_1f0c…`."""
    if not prefix or not isinstance(prefix, str):
        raise ValueError("new_key takes a prefix, such as the channel a message came from")
    return f"{prefix}_{secrets.token_hex(8)}"


def document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a text file says about itself: content, source_path, project and doc_date, by the names of `enqueue`."""
    file = Path(path).resolve(strict=True)
    try:
        content = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}); enqueue its bytes instead") from error
    day = date.fromtimestamp(file.stat().st_mtime)
    return {"content": content, "source_path": file, "project": _project_of(file), "doc_date": day}


def _reopen(cls: type[Queue], path: str, name: str, options: dict[str, Any]) -> Queue:
    """Unpickle a queue: open the same file with the same options."""
    return cls(path, name, **options)


def _project_of(file: Path) -> str:
    """Name the enclosing git repository, else the directory."""
    for directory in file.parents:
        if (directory / ".git").exists():
            return directory.name
    return file.parent.name
