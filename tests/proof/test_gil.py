"""Handlers that hold the GIL for several leases keep their items, in many processes at once."""

import pytest
from programs import PROGRAMS

HOGS = 4
ITEMS = 3
LEASE = 1.0


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_no_lease_is_lost_while_handlers_hold_the_gil_for_five_leases(path, queue, start, until):
    queue.enqueue_many(range(HOGS * ITEMS))
    hogs = [start(PROGRAMS / "hold_the_gil.py", path, LEASE, ITEMS) for _ in range(HOGS)]
    until(lambda: queue.counts()["processing"] == HOGS)
    # Somebody else takes whatever is free; nothing that is held ever is.
    stolen = []
    while any(hog.poll() is None for hog in hogs):
        item = queue.claim(wait=0.1)
        if item is not None:
            stolen.append((item.attempt, queue.release(item, delay=0.2)))
    assert [hog.communicate()[0] for hog in hogs] == [f"{ITEMS} 0\n"] * HOGS
    assert all(released for _, released in stolen)
    items = queue.items(limit=100)
    assert {(item.status, item.retries, item.result) for item in items} == {("done", 0, False)}
