"""What goes wrong at the command line is told in one line, without a traceback, and with what to do."""

import contextlib
import os
import sys
from collections.abc import Iterator

from membox_queue.errors import QueueError
from membox_queue.legible import line

FAILED_ITEMS = 3
"""The exit code when the command did its work, but items failed."""
INTERRUPTED = 130
"""The exit code when a signal ended the work before it was done."""


class Mistake(Exception):  # noqa: N818 - somebody's, not an error of ours
    """Something that whoever gave the command can mend."""


@contextlib.contextmanager
def told_in_a_line() -> Iterator[None]:
    """Tell a mistake that is made inside, and leave with exit code 1."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the program that started this one
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        # A terminal that cannot show a character shows another; it is no reason to fail.
        getattr(getattr(sys, name), "reconfigure", lambda **_: None)(errors="replace")
    try:
        yield
    except BrokenPipeError:
        raise
    except (Mistake, QueueError, ValueError, OSError) as error:
        print(f"membox-queue: {line(str(error))}", file=sys.stderr)
        sys.exit(1)
