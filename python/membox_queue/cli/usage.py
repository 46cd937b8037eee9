"""Errors of the command line: one line, no traceback, and what to do."""

import contextlib
import os
import sys
from collections.abc import Iterator

from membox_queue.errors import QueueError
from membox_queue.terminal_text import line

FAILED_ITEMS = 3
"""The exit code when the command did its work, but items failed."""
INTERRUPTED = 130
"""The exit code when a signal ended the work before it was done."""


class UsageError(Exception):
    """Something that the user who gave the command can correct."""


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Print an error that is raised inside as one line, and exit with code 1."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the program that started this one
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        # A terminal that cannot show a character shows another instead of failing.
        getattr(getattr(sys, name), "reconfigure", lambda **_: None)(errors="replace")
    try:
        yield
    except BrokenPipeError:
        raise
    except (UsageError, QueueError, ValueError, OSError) as error:
        print(f"membox-queue: {line(str(error))}", file=sys.stderr)
        sys.exit(1)
