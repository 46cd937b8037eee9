"""Claims beside plain INSERTs and another process that writes."""

import math
import threading

import pytest
from membox_queue import Queue


@pytest.fixture
def waiting(queue):
    """Start a claim that waits in a thread; what it got is in the list after the join."""
    threads = []

    def waiting(**options):
        got = []
        thread = threading.Thread(target=lambda: got.append(queue.claim(**options)))
        threads.append(thread)
        thread.start()
        thread.join(0.1)
        assert thread.is_alive(), "claim did not wait"
        return thread, got

    yield waiting
    queue.close()
    for thread in threads:
        thread.join(30)


def test_a_wait_is_over_when_another_process_inserts_a_row(queue, waiting, path, sql):
    thread, got = waiting(wait=math.inf)
    sql(path, "INSERT INTO ingest_queue (content) VALUES ('x')")
    thread.join(30)
    assert got[0].content == "x"


CLAIMS_THAT_FIND_NOTHING = {
    "empty": (lambda queue: None, lambda queue: queue.claim()),
    "all taken": (lambda queue: [queue.enqueue("x"), queue.claim()], lambda queue: queue.claim()),
    "delayed": (lambda queue: queue.enqueue("x", delay=60), lambda queue: queue.claim()),
    "paused": (lambda queue: [queue.enqueue("x"), queue.pause()], lambda queue: queue.claim()),
    "another group": (lambda queue: queue.enqueue("x", group="a"), lambda queue: queue.claim(group="b")),
    "no group": (
        lambda queue: [queue.enqueue("x", group="a"), queue.claim(), queue.enqueue("y", group="a")],
        lambda queue: queue.claim_group() or None,
    ),
    "no such group": (lambda queue: queue.enqueue("x", group="a"), lambda queue: queue.claim_group("b") or None),
}


@pytest.mark.parametrize("case", CLAIMS_THAT_FIND_NOTHING)
def test_a_claim_that_finds_nothing_does_not_wait_for_another_writer(path, writer, case):
    prepare, claim = CLAIMS_THAT_FIND_NOTHING[case]
    with Queue(path, busy_timeout=0.2) as queue:
        prepare(queue)
        close_if_idle = writer()
        assert claim(queue) is None
        close_if_idle()
