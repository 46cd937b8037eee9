"""Children forked from a process that has imported everything: a process costs milliseconds, not a start of Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


def run(program: str, *arguments: object, timeout: float = 600) -> dict[str, Any]:
    """Run one of the programs of this directory in a process of its own; what it said in its last line, as JSON."""
    command = [sys.executable, str(HERE / f"{program}.py"), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert ended.returncode == 0, ended.stderr[-4000:]
    said: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return said | {"stderr": ended.stderr}


def fork(work: Callable[..., object], *arguments: object) -> int:
    """Let a child do this and leave: 0 when it came to its end, 1 when it raised."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for a child; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
