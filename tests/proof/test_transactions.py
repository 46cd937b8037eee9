"""What a transaction promises beside being one: its time is read inside it, and it is on disk when the call returns."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from membox_queue import Queue
from programs import PROGRAMS


def blocked(pool, until, queue, call):
    """A call that waits for the write lock of another process by now."""
    waiting = pool.submit(call)
    # Nothing tells that a call waits, but it has begun before the clock is moved, and that is what matters here.
    until(lambda: waiting.running())
    with pytest.raises(TimeoutError):
        waiting.result(0.3)
    return waiting


@pytest.mark.parametrize("verb", ["claim", "enqueue", "extend"])
def test_time_is_read_when_the_lock_is_held_and_not_before(path, clock, writer, until, verb):
    with Queue(path, lease=60, busy_timeout=60) as queue, ThreadPoolExecutor(1) as pool:
        queue.enqueue("x")
        item = queue.claim() if verb == "extend" else None
        close_if_idle = writer()
        calls = {
            "claim": queue.claim,
            "enqueue": lambda: queue.enqueue("y", delay=10),
            "extend": lambda: queue.extend(item, 60),
        }
        waiting = blocked(pool, until, queue, calls[verb])
        clock.advance(3600)
        close_if_idle()
        waiting.result(60)
        if verb == "enqueue":
            assert (queue.get(2).enqueued_at, queue.get(2).run_at) == (clock.now, clock.now + timedelta(seconds=10))
        else:
            assert queue.get(1).lease_until == clock.now + timedelta(seconds=60)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_what_is_acknowledged_is_synced_before_the_call_returns(path, tmp_path):
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-e", "trace=write,fsync,fdatasync", "-o", str(trace)]
    command += [sys.executable, PROGRAMS / "acknowledge.py", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=100)
    calls = re.findall(r'"begin (\w+)"(.*?)"end \1"', trace.read_text(), re.DOTALL)
    synced = {name: "sync(" in between for name, between in calls}
    # A claim whose loss costs a redelivery does not wait for the disk.
    assert synced == {"enqueue": True, "enqueue_many": True, "mark_done": True, "claim": False}
