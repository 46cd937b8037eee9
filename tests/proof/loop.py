"""Cuts the power of a real file system: one on a loop device, whose image holds only what has reached the block device.

A writer keeps its ledger outside. It is stopped at a moment chosen by lot, the image is copied, the copy is mounted,
and what it holds is compared with the ledger.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from membox_queue import Queue

from proof.disk import memory_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = {"ext4": 64, "xfs": 320, "btrfs": 128}
MIB = 1024 * 1024
CUTS_A_FILE = 50
LONGEST_RUN = 0.06
NAME = "memory.db"

WRITER = """
import os, sys, threading
from membox_queue import Queue
queue = Queue(sys.argv[1], durability=sys.argv[2])
def tell(line):
    os.write(1, line.encode())
def put(number):
    turn = 0
    while True:
        turn += 1
        content = f"{number}-{turn}"
        tell(f"E {queue.enqueue(content)} {content}\\n")
def work():
    while True:
        item = queue.claim(wait=60)
        if item and queue.mark_done(item):
            tell(f"D {item.id}\\n")
threads = [threading.Thread(target=put, args=(number,)) for number in range(2)] + [threading.Thread(target=work)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@dataclass
class Result:
    """What all cuts of one file system have shown."""

    cuts: int = 0
    # Counted at every cut, so an item is counted as often as it was looked for.
    acknowledged: int = 0
    lost: int = 0
    most_lost: int = 0
    undone: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Ledger:
    """What a writer has said so far."""

    put: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    rest: str = ""

    def read(self, descriptor: int) -> None:
        """Take everything that was said until now."""
        with contextlib.suppress(BlockingIOError):
            while said := os.read(descriptor, 65536):
                self.rest += said.decode()
        *lines, self.rest = self.rest.split("\n")
        for line in lines:
            match line.split():
                case ["E", id, content]:
                    self.put[int(id)] = content
                case ["D", id]:
                    self.done.add(int(id))


def need(kind: str) -> None:
    """Skip where no file system can be made on a loop device."""
    if os.geteuid() != 0:
        pytest.skip("mounting an image needs root")
    if not shutil.which(f"mkfs.{kind}"):
        pytest.skip(f"mkfs.{kind} is not installed")
    with memory_folder() as folder:
        make(kind, Path(folder, "image"))
        Path(folder, "mounted").mkdir()
        tried = mount(kind, Path(folder, "image"), Path(folder, "mounted"))
        if tried.returncode != 0:
            pytest.skip(f"this system mounts no {kind} image: {tried.stderr.strip()}")
        unmount(Path(folder, "mounted"))


def make(kind: str, image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(SIZES[kind] * MIB)
    force = "-F" if kind == "ext4" else "-f"
    subprocess.run([f"mkfs.{kind}", "-q", force, image], check=True, capture_output=True)


def mount(kind: str, image: Path, at: Path) -> subprocess.CompletedProcess[str]:
    # A copy is mounted beside its original, whose identity it shares.
    options = "loop,nouuid" if kind == "xfs" else "loop"
    return subprocess.run(["mount", "-t", kind, "-o", options, image, at], capture_output=True, text=True)


def unmount(at: Path) -> None:
    # Somebody on the machine may look into a fresh mount for a moment.
    for _ in range(50):
        if subprocess.run(["umount", at], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", at], check=True)


@contextlib.contextmanager
def mounted(kind: str, image: Path, at: Path) -> Iterator[Path]:
    at.mkdir()
    tried = mount(kind, image, at)
    try:
        assert tried.returncode == 0, tried.stderr
        yield at
    finally:
        if tried.returncode == 0:
            unmount(at)
        at.rmdir()


def cut_often(kind: str, durability: str, count: int, seed: int) -> Result:
    """Cut the power so many times, a few times a file."""
    result, dice = Result(), random.Random(seed)
    with memory_folder() as name:
        folder = Path(name)
        while result.cuts < count:
            make(kind, folder / "image")
            with mounted(kind, folder / "image", folder / "disk") as disk:
                cut_one_file(kind, folder, disk, durability, min(CUTS_A_FILE, count - result.cuts), dice, result)
            (folder / "image").unlink()
    return result


def cut_one_file(
    kind: str, folder: Path, disk: Path, durability: str, count: int, dice: random.Random, result: Result
) -> None:
    command = [sys.executable, "-c", WRITER, disk / NAME, durability]
    ledger = Ledger()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        said = writer.stdout.fileno()
        os.set_blocking(said, False)
        try:
            while not (disk / NAME).exists() and writer.poll() is None:
                time.sleep(0.001)
            for _ in range(count):
                time.sleep(dice.random() * LONGEST_RUN)
                writer.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                assert writer.poll() is None, "the writer has ended by itself"
                ledger.read(said)
                copy(folder / "image", folder / "copy")
                result.cuts += 1
                with mounted(kind, folder / "copy", folder / "after") as after:
                    compare(after / NAME, ledger, result)
                writer.send_signal(signal.SIGCONT)
        finally:
            writer.kill()


def copy(image: Path, to: Path) -> None:
    """Copy an image while nobody writes to it: the kernel may still be at it after the writer has stopped."""
    listed = subprocess.run(["losetup", "-n", "-O", "NAME", "-j", image], check=True, capture_output=True, text=True)
    device = Path("/sys/block", Path(listed.stdout.strip()).name, "stat")
    for _ in range(200):
        before = device.read_text()
        subprocess.run(["cp", "--sparse=auto", image, to], check=True)
        if written(device.read_text()) == written(before):
            return
        time.sleep(0.01)
    raise AssertionError("the image does not come to rest")


def written(stat: str) -> tuple[str, bool]:
    """Of a block device's counters: what was written so far, and whether anything is on its way."""
    fields = stat.split()
    return fields[6], fields[8] == "0"


def compare(path: Path, ledger: Ledger, result: Result) -> None:
    if not path.exists():
        found = {}
    else:
        try:
            with Queue(path) as queue:
                queue.enqueue("after")
        except Exception as error:
            result.wrong.append(f"the library refuses the file: {error!r}")
            return
        connection = sqlite3.connect(path)
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        rows = connection.execute("SELECT id, content, status FROM ingest_queue")
        found = {id: (content, status) for id, content, status in rows}
        connection.close()
        if integrity != "ok":
            result.wrong.append(integrity)
    lost = sum(found.get(id, ("", ""))[0] != content for id, content in ledger.put.items())
    result.acknowledged += len(ledger.put)
    result.lost += lost
    result.most_lost = max(result.most_lost, lost)
    result.undone += sum(found[id][1] != "done" for id in ledger.done if id in found)
