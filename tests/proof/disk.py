"""The disk between a process and its files (disk.c): built once, loaded into a program, told what to do."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class Fault(IntEnum):
    """What may become of a call; the numbers are those of disk.c."""

    NONE = 0
    FAIL = 1
    FAIL_FROM_HERE = 2
    SHORT = 3
    DIE = 4
    TEAR = 5
    FAIL_SYNC = 6


class Disk:
    """The disk of a process that was started with it."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.library.disk_trace.restype = ctypes.c_char_p
        self.library.disk_mark.argtypes = [ctypes.c_int64]
        self.library.disk_arm.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]

    def watch(self, directory: Path) -> None:
        """Stand before the files of this directory, and forget those of the last one."""
        self.library.disk_watch(os.fsencode(directory))

    def arm(self, fault: Fault, code: int = 0, call: int = 0) -> None:
        """Count calls from here on, and let the one with this number meet the fault."""
        self.library.disk_arm(fault, code, call)

    def arm_sync(self, number: int) -> None:
        """Let the sync with this number fail as a broken disk lets it fail."""
        self.arm(Fault.FAIL_SYNC, errno.EIO, number)

    def disarm(self) -> bool:
        """Let everything pass again. Says whether a call met the fault."""
        return bool(self.library.disk_disarm())

    def trace(self) -> list[str]:
        """The names of the calls since `arm`."""
        return self.library.disk_trace().decode().split()

    def record(self, descriptor: int) -> None:
        """Write every change, with its data, to this descriptor; -1 ends it."""
        self.library.disk_record(descriptor)

    def mark(self, number: int) -> None:
        """Put a mark between the recorded changes."""
        self.library.disk_mark(number)


def build(folder: Path) -> Path:
    """Compile disk.c; where there is no compiler or no LD_PRELOAD, the test is skipped."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the disk between a process and its files is loaded with LD_PRELOAD, as Linux has it")
    if not (compiler := shutil.which("cc")):
        pytest.skip("no C compiler (cc) to build tests/proof/disk.c with")
    library = folder / "disk.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, HERE / "disk.c", "-ldl"], check=True)
    return library


def run(library: Path, module: str, *arguments: str, under: list[str] | None = None, timeout: float = 3000) -> Any:
    """Run a program of this package with the disk loaded; what it printed as JSON."""
    env = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(HERE.parent)}
    command = [*(under or []), sys.executable, "-m", f"proof.{module}", *arguments]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout)


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where there is one: what the disk does is played here, so the real one need not be slow."""
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None, prefix="membox-proof-")
