"""What goes wrong at the command line is told in one line, without a traceback, and with what to do."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from membox_queue.errors import QueueError
from membox_queue.legible import line

FAILED_ITEMS = 3
"""The exit code when the command did its work, but items failed."""
INTERRUPTED = 130
"""The exit code when a signal ended the work before it was done."""


class Mistake(Exception):  # noqa: N818 - somebody's, not an error of ours
    """Something that whoever gave the command can mend."""


class Commands(TyperGroup):
    """All commands; none of them shows a traceback for a mistake."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character shows another; it is no reason to fail.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (Mistake, QueueError, ValueError, OSError) as error:
            typer.echo(f"membox-queue: {line(str(error))}", err=True)
            raise typer.Exit(1) from None
