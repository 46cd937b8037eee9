"""Death and errors at every system call of a verb: nothing acknowledged is lost, half done, or broken for good."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from proof.disk import build, run
from proof.faults import BEGIN, END, VERBS

if TYPE_CHECKING:
    from pathlib import Path

EVERY = pytest.mark.proof
# In the default run only every so many calls.
SHORT = {
    "enqueue": 2,
    "claim": 5,
    "mark_done": 1,
    "prune": 6,
    "close": 5,
    "create": 60,
    "open_left": 30,
    "migrate_1": 40,
}


def forms(names):
    short = [pytest.param(name, step, id=f"{name}-short") for name, step in SHORT.items() if name in names]
    return short + [pytest.param(name, 1, id=name, marks=EVERY) for name in names]


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("disk"))


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("verb", "step"), forms(VERBS))
def test_a_process_that_dies_at_any_call_leaves_all_or_nothing(disk: Path, verb: str, step: int) -> None:
    report = run(disk, "faults", "death", verb, str(step))
    print(f"{verb}: {report['trials']} deaths at {report['calls']} calls")
    assert report["trials"] >= report["calls"] // step
    assert report["wrong"] == []


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("verb", "step"), forms(VERBS))
def test_an_error_at_any_call_is_told_and_the_next_call_works(disk: Path, verb: str, step: int) -> None:
    report = run(disk, "faults", "error", verb, str(step))
    print(f"{verb}: {report['trials']} errors at {report['calls']} calls")
    assert report["trials"] >= 8 * (report["calls"] // step)
    assert report["wrong"] == []


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("step", [12, pytest.param(1, marks=EVERY)])
def test_an_error_in_a_shared_commit_is_acknowledged_to_nobody(disk: Path, step: int) -> None:
    report = run(disk, "faults", "error", "shared", str(step))
    print(f"shared: {report['trials']} errors")
    assert report["wrong"] == []


# How strace names what the disk names shorter.
STRACE = {"open": "openat", "pwrite": "pwrite64", "pread": "pread64"}
# What only looks at a name: the C library does so by itself when it resolves a path.
LOOKS = {"stat", "lstat", "fstat", "newfstatat", "statx", "readlink", "access", "faccessat", "faccessat2"}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("verb", ["enqueue", *(pytest.param(verb, marks=EVERY) for verb in VERBS)])
def test_no_call_of_a_verb_escapes_the_disk(disk: Path, tmp_path: Path, verb: str) -> None:
    """The trials are only worth what the disk sees, so another observer counts the calls too."""
    if not (strace := shutil.which("strace")):
        pytest.skip("strace is not installed (apt-get install strace)")
    log = tmp_path / "strace"
    calls = run(disk, "faults", "calls", verb, "1", under=[strace, "-f", "-y", "-qq", "-s", "512", "-o", str(log)])
    text = log.read_text(errors="replace")
    first = text[text.index(BEGIN) : text.index(END)].splitlines()[1:-1]
    seen = Counter(
        match[1]
        for line in first
        if "/membox-proof-" in line and (match := re.match(r"\d+ +(\w+)\(", line)) and match[1] not in LOOKS
    )
    assert seen == Counter(STRACE.get(call, call) for call in calls if call not in LOOKS)
    assert seen
