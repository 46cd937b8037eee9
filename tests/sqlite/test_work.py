"""Loops beside another process that holds the write lock."""

import sys
import threading
from pathlib import Path

import pytest
from loops_in_threads import ended, nothing
from membox_queue import DiskFullError, DrainReport, Queue, QueueBusyError, StorageError, Worker
from membox_queue.loops import slot


class Writer:
    """Somebody else who holds the write lock until the loop has complained."""

    def __init__(self, writer):
        self.close_if_idle = writer()
        self.told = []

    def on_error(self, error, item, phase):
        self.told.append((type(error), item and item.id, phase))
        if self.close_if_idle:
            self.close_if_idle()
            self.close_if_idle = None


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_store_that_is_busy_for_a_claim_is_tried_again_without_a_restart(
    path, writer, background, until, concurrency
):
    with Queue(path, busy_timeout=0.02) as queue:
        queue.enqueue("x")
        busy = Writer(writer)
        future = background(queue.work, nothing, on_error=busy.on_error, concurrency=concurrency)
        until(lambda: queue.counts()["done"] == 1)
        assert set(busy.told) == {(QueueBusyError, None, "claim")}
        assert ended(queue, future) == DrainReport(done=1, stopped=True)


def test_a_store_busy_at_the_end_of_an_item_is_tried_again_and_nothing_runs_twice(path, writer):
    with Queue(path, busy_timeout=0.02) as queue:
        queue.enqueue_many(["x", "y"])
        writers = []

        def handler(item):
            if item.content == "x":
                writers.append(Writer(writer))
            return item.content

        report = queue.drain(handler, on_error=lambda *what: writers[0].on_error(*what))
        assert report == DrainReport(done=2)
        assert writers[0].told[0] == (QueueBusyError, 1, "finish")
        assert [(item.attempt, item.retries, item.result) for item in queue.items()] == [(1, 0, "x"), (1, 0, "y")]


def hurry(monkeypatch):
    """Let loops try again sooner."""
    as_ever = slot.Slot.pauses
    monkeypatch.setattr(
        slot.Slot, "pauses", lambda *arguments, **options: (pause / 50 for pause in as_ever(*arguments, **options))
    )


def test_what_a_handler_did_is_recorded_however_long_the_write_lock_is_held(path, writer, monkeypatch):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue:
        queue.enqueue("x")
        told, close_if_idle = [], []

        def handler(item):
            close_if_idle.append(writer())
            return "result"

        def on_error(error, item, phase):
            told.append(phase)
            if len(told) == 12:
                close_if_idle[0]()

        assert queue.drain(handler, on_error=on_error) == DrainReport(done=1)
        assert (queue.get(1).result, queue.get(1).attempt, set(told)) == ("result", 1, {"finish"})


def test_a_drain_gives_up_on_a_store_that_stays_busy_and_work_does_not(path, writer, background, monkeypatch, until):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue:
        queue.enqueue("x")
        close_if_idle = writer()
        with pytest.raises(QueueBusyError):
            queue.drain(nothing, exclusive=False)
        told = []
        future = background(queue.work, nothing, on_error=lambda *what: told.append(what))
        until(lambda: len(told) > 8)
        close_if_idle()
        until(lambda: queue.counts()["done"] == 1)
        assert ended(queue, future).done == 1


def test_a_drain_that_ended_because_it_could_not_record_leaves_no_live_lease(path, membox_faults, writer, monkeypatch):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue, Queue(path) as other:
        queue.enqueue("x")
        close_if_idle = []
        membox_faults.disk_full("finish", times=1000)

        def on_error(error, item, phase):
            # From now on nothing can be written at all.
            if not close_if_idle:
                close_if_idle.append(writer())

        with pytest.raises(DiskFullError):
            queue.drain(nothing, on_error=on_error)
        assert not queue.worker_is_alive()
        assert not other.worker_is_alive()
        close_if_idle[0]()
        membox_faults.disarm()
        assert not queue.drain(nothing).refused


def sleeps(thread):
    """Whether the system has put a thread to sleep."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a thread does")
def test_a_loop_that_waits_for_its_turn_to_write_claims_nothing_once_it_was_stopped(queue, writer, until):
    locks, reports = [], []
    queue.enqueue_many(["handled", "left"])
    working = threading.Thread(
        target=lambda: reports.append(queue.work(lambda item: locks.append(writer()))), daemon=True
    )
    working.start()
    until(lambda: locks)
    # Seen asleep so often it waits for the writer; should it come there later, it knows that it was stopped.
    for _ in range(20):
        until(lambda: sleeps(working))
    queue.stop()
    locks[0]()
    working.join(30)
    assert reports == [DrainReport(done=1, stopped=True)]
    assert queue.get(2).attempt == 0


@pytest.mark.parametrize("concurrency", [1, 2])
def test_work_notices_a_file_that_is_moved_away_and_goes_on_when_it_is_back(queue, path, working, until, concurrency):
    told, counted = [], []
    future = working(
        nothing,
        concurrency=concurrency,
        on_error=lambda error, item, phase: told.append((error, phase)),
        progress=lambda event: counted.append(event.kind),
    )
    queue.enqueue("before")
    # Not before its end was recorded and acknowledged: what is committed can be seen a little earlier.
    until(lambda: "done" in counted)
    path.rename(path.with_suffix(".away"))
    # A look that was under way in that moment may meet an error of its own first.
    until(lambda: any("removed or replaced" in str(error) for error, _ in told))
    assert {(isinstance(error, StorageError), phase) for error, phase in told} == {(True, "claim")}
    path.with_suffix(".away").rename(path)
    assert queue.wait(queue.enqueue("after"), 30).status == "done"
    assert ended(queue, future) == DrainReport(done=2, stopped=True)


def test_a_worker_means_the_file_its_path_led_to_when_it_was_made(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    worker = Worker("relative.db", {"ingest": print})
    monkeypatch.chdir(tmp_path / "two")
    worker.drain()
    assert (tmp_path / "one" / "relative.db").exists()
    assert not (tmp_path / "two" / "relative.db").exists()
