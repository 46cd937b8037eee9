"""Queue: Python manners over the native class."""

from __future__ import annotations

import secrets
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from membox_queue import _native
from membox_queue import drain as _drain
from membox_queue.errors import QueueError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self


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
        file = Path(path).resolve(strict=True)
        try:
            content = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not UTF-8 text ({error}); enqueue its bytes instead") from error
        return self.enqueue(
            content,
            project=_project_of(file) if project is None else project,
            source_path=file if source_path is None else source_path,
            doc_date=date.fromtimestamp(file.stat().st_mtime) if doc_date is None else doc_date,
            **options,
        )

    def drain(self, handler: Callable[[_native.Item], Any], *, retry_failed: bool = False) -> _drain.DrainReport:
        """Claim and handle items until nothing is due, then return.

        Takes the worker lease first; when another live worker holds it, returns at once with `refused`. The handler's
        JSON return value becomes the result. An exception fails the item and the loop goes on; `RetryLater` and
        `GiveUp` say more. Claim and lease are kept alive by a native thread however long the handler runs.
        KeyboardInterrupt and SystemExit give the item back uncounted and propagate. With `retry_failed`, failed items
        below their ceiling are brought back first.
        """
        return _drain.drain(self, handler, retry_failed=retry_failed)

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
        return _reopen, (type(self), str(self.path), self.name, self.options)

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else ""
        return f"<Queue {self.name!r} in {str(self.path or ':memory:')!r}{state}>"


def new_key(prefix: str) -> str:
    """Make a readable key that nobody else has made: `discord_1f0c…`."""
    if not prefix or not isinstance(prefix, str):
        raise ValueError("new_key takes a prefix, such as the channel a message came from")
    return f"{prefix}_{secrets.token_hex(8)}"


def _reopen(cls: type[Queue], path: str, name: str, options: dict[str, Any]) -> Queue:
    """Unpickle a queue: open the same file with the same options."""
    return cls(path, name, **options)


def _project_of(file: Path) -> str:
    """Name the enclosing git repository, else the directory."""
    for directory in file.parents:
        if (directory / ".git").exists():
            return directory.name
    return file.parent.name
