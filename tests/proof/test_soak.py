"""The soak: under mixed load memory, descriptors, threads, log and file stay as they are."""

import os
import sqlite3

import pytest

from proof.nursery import run
from proof.soak import drifts

HOUR = 3600.0


def seconds():
    """One hour, or what PROOF_SOAK says."""
    return float(os.environ.get("PROOF_SOAK") or HOUR)


@pytest.mark.parametrize("form", ["short", pytest.param("long", marks=pytest.mark.proof)])
@pytest.mark.timeout(3 * HOUR)
def test_nothing_grows(path, form):
    lasting = 5.0 if form == "short" else seconds()
    said = run("soak", path, lasting, timeout=3 * HOUR)
    print(f"{lasting:.0f} s, {said['items']} items, log at most {said['highest log'] >> 20} MB")
    for name, (before, after) in said["figures"].items():
        print(f"  {name}: {before:.0f} -> {after:.0f}")
    assert set(said["codes"].values()) == {0}, said["stderr"]
    assert said["log afterwards"] == 0
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    # Five seconds are warming up throughout; they show that the soak runs, and what it leaves.
    if form == "long":
        assert said["drifts"] == []


@pytest.mark.parametrize("name", ["work rss", "work descriptors", "work threads", "log", "file"])
def test_the_rule_sees_what_grows(name):
    assert drifts({name: [10**7] * 400}) == []
    assert drifts({name: [10**7 + 10**6 * number for number in range(400)]}) != []
