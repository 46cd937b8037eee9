"""The command as a process of its own, in a pipe and at a terminal."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sysconfig
import termios
import time
from pathlib import Path
from typing import NamedTuple

COMMAND = Path(sysconfig.get_path("scripts")) / "membox-queue"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def environment(**more):
    disturbing = ("MEMBOX_QUEUE_DB", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM")
    kept = {name: value for name, value in os.environ.items() if name not in disturbing}
    return {**kept, "TERM": "xterm-256color", **more}


class Terminal:
    """The command at a terminal of 80 columns."""

    def __init__(self, arguments, folder, size=(24, 80), command=(COMMAND,)):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        # A session of its own, so that Ctrl-C reaches it, and it alone.
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.raw = ""

    @property
    def seen(self):
        """What was written, without colours and other movements."""
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])", "", self.raw).replace("\r\n", "\n")

    def read(self, limit):
        if not select.select([self.ours], [], [], limit)[0]:
            return True
        try:
            part = os.read(self.ours, 65536)
        except OSError:  # the other side is gone
            return False
        self.raw += part.decode(errors="replace")
        return bool(part)

    def until(self, words, limit=60.0):
        deadline = time.monotonic() + limit
        while words not in self.seen:
            assert time.monotonic() < deadline, self.raw[-2000:]
            assert self.read(0.1), self.raw[-2000:]
        return self.seen

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def end(self, limit=60.0):
        deadline = time.monotonic() + limit
        while self.read(0.1):
            assert time.monotonic() < deadline, self.raw[-2000:]
        return self.process.wait(timeout=limit)

    def close(self):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.ours)
