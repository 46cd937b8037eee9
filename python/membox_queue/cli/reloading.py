"""Reloading: notice that the code of imported modules has changed."""

import contextlib
import logging
import os
import signal
import site
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterator

logger = logging.getLogger("membox_queue")

AGAIN = 75
"""The exit code of a process that wants to be started again."""
EVERY = 0.5
"""Seconds between two looks at the files."""


class CodeWatch:
    """Watches the files of all imported modules that are neither in the standard library nor installed."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.more: set[str] = set()
        self.has_changed = False
        self.ended = threading.Event()
        paths = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), site.getusersitepackages()}
        self.ignored = tuple(os.path.join(path, "") for path in {*paths, *site.getsitepackages()})

    def add_files_of(self, error: BaseException) -> None:
        """Watch the files that an import came through before it failed."""
        cause: BaseException | None = error
        while cause is not None:
            self.more.update(frame.filename for frame in traceback.extract_tb(cause.__traceback__))
            if isinstance(cause, SyntaxError) and cause.filename:
                self.more.add(cause.filename)
            cause = cause.__cause__ or cause.__context__

    def files(self) -> dict[str, int]:
        """Return the files, and when each was changed."""
        imported = {getattr(module, "__file__", None) for module in tuple(sys.modules.values())}
        here = os.path.dirname(os.path.dirname(__file__))
        found = {}
        for file in {name for name in imported | self.more if isinstance(name, str)}:
            if file.endswith(".py") and not file.startswith(self.ignored) and not file.startswith(here):
                with contextlib.suppress(OSError):
                    found[file] = os.stat(file).st_mtime_ns
        return found

    def changed(self) -> str | None:
        """Return a file that has changed since it was first seen, or that is gone."""
        present = self.files()
        for file, time in self.known.items():
            if present.get(file) != time:
                return file
        self.known |= present
        return None

    def wait(self) -> None:
        """Wait for a change."""
        while (file := self.changed()) is None and not self.ended.wait(EVERY):
            pass
        if file is not None:
            self.has_changed = True
            logger.info("%s has changed; starting again", file, extra={"event": "code_changed", "file": file})

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Stop this process, as SIGTERM does, when the code changes."""
        self.changed()
        thread = threading.Thread(target=self.stop_after_change, name="membox-queue-reload", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.ended.set()

    def stop_after_change(self) -> None:
        """In a thread: wait for a change, then stop."""
        self.wait()
        if self.has_changed and not self.ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
