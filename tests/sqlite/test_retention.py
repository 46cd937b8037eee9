"""Retention of rows that plain SQL wrote, and the rows that it leaves."""

import signal
import threading

import pytest
from membox_queue import Queue

MANY_DONE = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
INSERT INTO ingest_queue (content, status, finished_at) SELECT 'x', 'done', '2026-01-01 00:00:00.000' FROM n
"""


def contents(queue):
    return [item.content for item in queue.items(limit=1000)]


def finish(queue, *names, clock=None, **options):
    """Enqueue and finish items one by one, a second after each other if there is a clock."""
    for name in names:
        queue.enqueue(name, **options)
        assert queue.mark_done(queue.claim())
        if clock is not None:
            clock.advance(1)


def test_rows_that_another_program_finished_without_a_time_cost_nobody_a_place(path, clock, sql):
    with Queue(path, keep_last=2, keep_for=3600) as queue:
        sql(path, "INSERT INTO ingest_queue (content, status) VALUES ('timeless', 'done'), ('timeless', 'done')")
        finish(queue, "a", "b", clock=clock)
        queue.tend()
        assert contents(queue)[-2:] == ["a", "b"]


@pytest.mark.parametrize("remove", [lambda queue: queue.tend(), lambda queue: queue.purge("done")])
def test_a_signal_ends_what_goes_on_for_long(path, sql, until, remove):
    class LeavingError(Exception):
        pass

    def leave(*_):
        raise LeavingError

    def disturb():
        until(lambda: queue.counts()["done"] < 50_000)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    with Queue(path, keep_last=0) as queue:
        sql(path, MANY_DONE)
        before = signal.signal(signal.SIGUSR1, leave)
        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            with pytest.raises(LeavingError):
                remove(queue)
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)
        assert queue.counts()["done"] > 0


def test_what_goes_takes_its_history_and_progress_along(path, clock, sql):
    with Queue(path, keep_for=60) as queue:
        queue.enqueue("x")
        queue.mark_failed(queue.claim(), "no", retry_in=0)
        item = queue.claim()
        item.set_progress(0.5, "half")
        queue.mark_done(item)
        clock.advance(61)
        queue.tend()
        assert queue.history(1) == []
        assert sql(path, "SELECT count(*) FROM membox_queue_history") == [[0]]
        assert sql(path, "SELECT count(*) FROM membox_queue_progress") == [[0]]
