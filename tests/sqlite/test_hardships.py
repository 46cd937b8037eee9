"""Hard cases: files replaced under an open queue, locks of one's own, interrupts, late starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from membox_queue import (
    AsyncQueue,
    DrainReport,
    GiveUp,
    Queue,
    QueueBusyError,
    Retry,
    RetryLater,
    StaleClaimError,
    StorageError,
)
from programs import PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def own(path, queue):
    """A connection of the user's own to the queue's file, in this process."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    yield connection
    connection.close()


@pytest.fixture
def hasty(path):
    with Queue(path, busy_timeout=0.05) as queue:
        yield queue


def test_a_file_replaced_by_rename_is_not_written_to(tmp_path: Path, path: Path) -> None:
    with Queue(tmp_path / "backup.db") as backup:
        backup.enqueue("older")
    with Queue(path) as queue:
        queue.enqueue("newer")
        os.replace(tmp_path / "backup.db", path)
        for _ in range(3):
            with pytest.raises(StorageError, match="removed or replaced"):
                queue.enqueue("after")


def test_a_file_that_vanished_is_an_error_and_not_made_anew(queue, path) -> None:
    queue.enqueue("x")
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(StorageError, match="removed or replaced"):
        queue.enqueue("y")
    assert not path.exists()


@pytest.mark.parametrize("wait", [lambda queue: queue.claim(wait=60), lambda queue: queue.wait(1, 60)])
def test_nobody_waits_for_a_file_that_vanished(queue, path, wait) -> None:
    queue.enqueue("x", delay=3600)
    assert queue.claim(wait=0.01) is None
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(StorageError, match="removed or replaced"):
        wait(queue)


def test_a_hard_link_is_refused(path, tmp_path) -> None:
    Queue(path).close()
    os.link(path, tmp_path / "twin.db")
    with pytest.raises(StorageError, match="hard links"):
        Queue(path)


OPEN_MOUNTED = """
mount --bind "$1" "$2" || exit 77
exec "$0" -c 'import sys; from membox_queue import Queue; print(Queue(sys.argv[1]).pending())' "$3"
"""


@pytest.fixture
def open_mounted(tmp_path):
    """Mount something over another name in another process, and open a queue there: what that printed."""

    def open_mounted(what: Path, over: Path, file: Path) -> str:
        if not shutil.which("unshare"):
            pytest.skip("unshare is not installed, so nothing can be mounted for one process alone")
        command = ["unshare", "-m", "sh", "-c", OPEN_MOUNTED, sys.executable, what, over, file]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if ended.returncode == 77 or "unshare failed" in ended.stdout:
            pytest.skip(f"this process may not mount anything: {ended.stdout.strip()}")
        return ended.stdout

    return open_mounted


def test_a_file_that_is_mounted_by_itself_is_refused_as_a_hard_link_is(queue, path, tmp_path, open_mounted) -> None:
    queue.enqueue("x")
    twin = tmp_path / "twin.db"
    twin.touch()
    told = open_mounted(path, twin, twin)
    assert "StorageError" in told
    assert "twin.db: the file itself is mounted here" in told
    assert "mount its directory instead" in told
    assert not (tmp_path / "twin.db-wal").exists()


def test_a_file_in_a_mounted_directory_is_opened(queue, path, tmp_path, open_mounted) -> None:
    queue.enqueue("x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert open_mounted(tmp_path, elsewhere, elsewhere / path.name) == "1\n"


def test_a_release_that_was_busy_can_be_repeated(hasty, own) -> None:
    assert hasty.acquire_worker_lease()
    own.execute("BEGIN IMMEDIATE")
    with pytest.raises(QueueBusyError, match="this very process"):
        hasty.release_worker_lease()
    own.execute("ROLLBACK")
    assert hasty.release_worker_lease()
    assert not hasty.worker_is_alive()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_call_inside_ones_own_transaction_warns_after_a_second_and_names_the_cause(
    path, own, caplog, until, threads
) -> None:
    with Queue(path) as queue, ThreadPoolExecutor() as pool:
        own.execute("BEGIN IMMEDIATE")
        calls = [pool.submit(queue.enqueue, "x") for _ in range(threads)]
        warned = until(lambda: [record for record in caplog.records if "this very process" in record.message])
        assert {(record.name, record.levelname) for record in warned} == {("membox_queue", "WARNING")}
        assert str(path) in warned[0].message
        own.execute("ROLLBACK")
        assert sorted(call.result(30) for call in calls) == [1, 2, 3][:threads]
        assert len([record for record in caplog.records if "this very process" in record.message]) <= threads


def test_a_call_that_waits_for_another_process_does_not_warn(path, writer, caplog) -> None:
    with Queue(path, busy_timeout=1.2) as queue:
        close_if_idle = writer()
        with pytest.raises(QueueBusyError):
            queue.enqueue("x")
        close_if_idle()
    assert not caplog.records


def test_a_warning_whose_handler_calls_the_queue_does_not_warn_again(path, own, caplog) -> None:
    calls = []

    class Enqueues(logging.Handler):
        def emit(self, record):
            calls.append(record)
            with contextlib.suppress(QueueBusyError):
                queue.enqueue(record.getMessage())

    handler = Enqueues()
    logging.getLogger("membox_queue").addHandler(handler)
    try:
        with Queue(path, busy_timeout=1.2) as queue:
            own.execute("BEGIN IMMEDIATE")
            with pytest.raises(QueueBusyError, match="this very process"):
                queue.enqueue("x")
            own.execute("ROLLBACK")
    finally:
        logging.getLogger("membox_queue").removeHandler(handler)
    assert len(calls) == 1


class Transaction:
    """One that a handler leaves open, until the loop has complained so often."""

    def __init__(self, own, times=8):
        self.own = own
        self.times = times
        self.told = []

    def open(self, item):
        if item.content == "x":
            # Another slot may be claiming at this moment.
            self.own.execute("PRAGMA busy_timeout = 30000")
            self.own.execute("BEGIN IMMEDIATE")

    def on_error(self, error, item, phase):
        if item is None:
            return
        self.told.append((type(error), item.id, phase))
        if len(self.told) == self.times:
            self.own.execute("ROLLBACK")


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_handler_that_leaves_its_transaction_open_fails_its_item(hasty, own, caplog, concurrency) -> None:
    hasty.enqueue_many(["x", "y"])
    transaction = Transaction(own)
    order = threading.Event()

    def handler(item):
        # The second item is handled once the first has ended, whichever slot has it.
        if item.content == "y":
            assert order.wait(30)
        transaction.open(item)
        return item.content

    def progress(event):
        if event.kind == "failed":
            order.set()

    report = hasty.drain(handler, concurrency=concurrency, on_error=transaction.on_error, progress=progress)
    assert (report.done, report.failed) == (1, 1)
    assert transaction.told[:2] == [(QueueBusyError, 1, "handler"), (QueueBusyError, 1, "finish")]
    assert "left a write transaction open" in hasty.get(1).error
    assert (hasty.get(1).retries, hasty.get(1).attempt, hasty.get(1).result) == (1, 1, None)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    # Once, although it was tried often; another slot may tell of its own claim.
    assert sum("could not finish" in message and "this very process" in message for message in warnings) == 1


@pytest.mark.parametrize("end", ["raises", "raises from", "exits", "leaves a cycle"])
def test_a_connection_of_a_handler_does_not_keep_the_loop_from_recording(path, hasty, end) -> None:
    hasty.enqueue_many(["x", "y"])

    def write(connection):
        connection.execute("BEGIN IMMEDIATE")
        raise ValueError("bad document")

    def handler(item):
        if item.content == "y":
            return
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if end == "leaves a cycle":
            connection.execute("BEGIN IMMEDIATE")
            cycle = [connection]
            cycle.append(cycle)
            return
        try:
            write(connection)
        except ValueError as error:
            if end == "exits":
                raise SystemExit(3) from error
            if end == "raises from":
                raise LookupError("worse") from error
            raise

    with contextlib.suppress(SystemExit):
        hasty.drain(handler)
    assert (hasty.get(1).retries, hasty.get(1).attempt) == (1, 1)
    assert hasty.drain(lambda item: None, retry_failed=True).failed == 0
    assert hasty.get(2).status == "done"


def test_a_handler_that_raises_with_its_transaction_open_fails_with_what_it_raised(hasty, own) -> None:
    hasty.enqueue_many(["x", "y"])
    transaction = Transaction(own)

    def handler(item):
        transaction.open(item)
        if item.content == "x":
            raise ValueError("bad document")

    assert hasty.drain(handler, on_error=transaction.on_error) == DrainReport(done=1, failed=1)
    assert hasty.get(1).error == "ValueError: bad document"


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_loop_that_cannot_record_is_stopped_all_the_same(hasty, own, concurrency) -> None:
    hasty.enqueue("x")

    def on_error(error, item, phase):
        hasty.stop()

    with pytest.raises(QueueBusyError):
        hasty.drain(Transaction(own).open, concurrency=concurrency, grace=0.1, on_error=on_error)
    own.execute("ROLLBACK")
    assert not hasty.worker_is_alive()


def test_a_coroutine_that_leaves_its_transaction_open_fails_its_item(path, own) -> None:
    transaction = Transaction(own)

    async def handler(item):
        transaction.open(item)

    async def main():
        async with AsyncQueue(path, busy_timeout=0.05) as queue:
            await queue.enqueue_many(["x", "y"])
            report = await queue.drain(handler, on_error=transaction.on_error)
            return report, (await queue.get(1)).error

    report, error = asyncio.run(main())
    assert report == DrainReport(done=1, failed=1)
    assert "left a write transaction open" in error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
def test_an_exception_of_the_user_is_not_replaced_when_it_cannot_be_recorded(hasty, own, error) -> None:
    hasty.enqueue("x")

    def work():
        with hasty.claim():
            own.execute("BEGIN IMMEDIATE")
            raise error

    with pytest.raises(error) as raised:
        work()
    assert "could not record" in raised.value.__notes__[0]


def test_an_interrupt_in_a_drain_is_not_replaced_when_the_item_cannot_be_given_back(hasty, own) -> None:
    hasty.enqueue("x")

    def handler(item):
        own.execute("BEGIN IMMEDIATE")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        hasty.drain(handler)
    assert "could not release everything" in raised.value.__notes__[0]


def test_entering_an_item_late_renews_it_at_once(queue, clock) -> None:
    queue.enqueue("x")
    item = queue.claim(lease=9)
    clock.advance(8)
    # More than a sixth of the lease in real time, and more than a second before the first beat.
    threading.Event().wait(1.6)
    with item:
        clock.advance(8)
        assert queue.claim() is None


def test_entering_an_item_whose_claim_has_ended_is_refused(queue, clock) -> None:
    queue.enqueue("x")
    item = queue.claim(lease=0.01)
    threading.Event().wait(0.01)
    clock.advance(1)
    with queue.claim() as taken:
        with pytest.raises(StaleClaimError), item:
            pytest.fail("the block must not run")
        assert not taken.lost
    with pytest.raises(StaleClaimError), taken:
        pytest.fail("the block must not run")


def test_an_item_finished_by_its_holder_is_not_lost(queue) -> None:
    queue.enqueue("x")
    with queue.claim(lease=0.03) as item:
        queue.mark_done(item)
        # Several beats that find nothing to renew.
        threading.Event().wait(0.05)
        assert not item.lost
        item.check()


def test_busy_files_do_not_stop_the_heartbeats_of_others_however_many_they_are(tmp_path, path) -> None:
    with contextlib.ExitStack() as ending:
        for number in range(10):
            file = tmp_path / f"busy{number}.db"
            busy = ending.enter_context(Queue(file, lease=1.2))
            busy.enqueue("x")
            ending.enter_context(busy.claim())
            held = ending.enter_context(contextlib.closing(sqlite3.connect(file, isolation_level=None)))
            held.execute("BEGIN IMMEDIATE")
        other = ending.enter_context(Queue(path, lease=1.2))
        other.enqueue("x")
        with other.claim() as item:
            # One after the other, the beats of the busy files would block for two seconds.
            threading.Event().wait(1.75)
            assert other.claim() is None
            assert not item.lost


def test_requests_mean_the_same_to_mark_failed_as_in_a_handler(path) -> None:
    with Queue(path, retry=Retry(max=9, base=0, jitter=0)) as queue:
        queue.enqueue_many(["a", "b"])
        queue.mark_failed(item=queue.claim(), error=GiveUp("no use"))
        assert (queue.get(1).status, queue.get(1).error) == ("failed", "no use")
        queue.mark_failed(queue.claim(), RetryLater(60, count=False))
        assert (queue.get(2).status, queue.get(2).retries) == ("pending", 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_handler_that_only_pretends_to_run_fails_its_item(queue) -> None:
    async def coroutine(item):
        return "never"

    def generator(item):
        yield item

    queue.enqueue_many(["a", "b"])
    assert queue.drain(lambda item: coroutine(item)).failed == 2
    assert "coroutine" in queue.get(1).error
    queue.retry_failed()
    assert queue.drain(generator).failed == 2


def test_control_c_ends_a_wait_for_the_lock(path) -> None:
    with subprocess.Popen(
        [sys.executable, PROGRAMS / "wait_for_the_lock.py", str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert out == "interrupted 0\n"


def test_a_fork_during_the_first_open_of_a_process_leaves_a_working_child(tmp_path) -> None:
    for number in range(15):
        command = [sys.executable, PROGRAMS / "fork_during_the_first_open.py", str(tmp_path / f"{number}.db")]
        assert subprocess.run(command, timeout=30).returncode == 0


def test_a_process_that_may_open_no_more_files_is_told_so(path, queue, start) -> None:
    program = PROGRAMS / "run_out_of_descriptors.py"
    told, enqueued = start(program, path).communicate(timeout=30)[0].splitlines()
    assert "ulimit -n" in told
    assert enqueued == "1"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is asked for with Linux's signal")
@pytest.mark.parametrize("reading", ["here", "elsewhere", "nowhere"])
@pytest.mark.parametrize(("verb", "answers"), [("enqueue", "3\n4 4\n"), ("compact", "None\n3 3\n")])
def test_the_call_after_an_io_error_works_although_another_connection_reads(
    path, start, sql, reading, verb, answers
) -> None:
    with Queue(path) as queue:
        queue.enqueue("first")
    if reading == "elsewhere":
        reader = start(PROGRAMS / "hold_a_read.py", path)
        assert reader.stdout.readline() == "1\n"
    told = start(PROGRAMS / "meet_a_size_limit.py", path, reading, verb).communicate(timeout=60)[0]
    assert told == "refused: True\n" + answers
    assert sql(path, "PRAGMA integrity_check") == [["ok"]]


def test_a_queue_whose_descriptors_were_closed_writes_to_no_file_of_the_program(path, start) -> None:
    process = start(PROGRAMS / "close_every_descriptor.py", path)
    refused, acknowledged = process.communicate(timeout=60)[0].splitlines()
    assert (refused, process.returncode) == ("refused True", 0)
    with Queue(path) as queue:
        assert queue.counts()["pending"] >= 1 + int(acknowledged)
        assert queue.check()["faults"] == []
