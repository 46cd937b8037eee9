"""Signals at random moments: everybody leaves in peace, and what was in hand is given back uncounted."""

import sqlite3

import pytest
from membox_queue import Queue

from proof.nursery import run


@pytest.mark.parametrize(
    "count", [pytest.param(21, id="short"), pytest.param(1000, id="long", marks=pytest.mark.proof)]
)
@pytest.mark.timeout(1800)
def test_a_signal_at_any_moment_ends_loops_and_waits_cleanly(path, seed, count):
    for name in ("loops", "by hand"):
        with Queue(path, name) as queue:
            queue.enqueue_many(range(10))
    said = run("signals", path, count, seed)
    assert (said["codes"], said["stderr"]) == ({}, "")
    with Queue(path, "loops") as queue:
        counts = queue.counts()
        assert (counts["processing"], counts["failed"]) == (0, 0)
        assert {item.retries for item in queue.items(limit=100_000)} == {0}
        assert not queue.worker_is_alive()
    with Queue(path, "by hand") as queue:
        # Between `claim` and `with` the item is the process's own, and lost with it.
        queue.drain(lambda item: None)
        assert queue.pending() == 0
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    print(
        f"{said['signals']} signals, {counts['done']} items done; gone after {said['p50'] * 1000:.0f} ms (median), "
        f"{said['p99'] * 1000:.0f} ms (99 of 100), {said['most'] * 1000:.0f} ms (longest)"
    )
