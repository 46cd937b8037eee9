"""work: claim and handle until stopped; and what all loops have in common."""

import io
import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from membox_queue import (
    DiskFullError,
    DrainReport,
    GiveUp,
    LoopEvent,
    NewItem,
    Queue,
    QueueBusyError,
    RetryLater,
    StaleClaimError,
    StorageError,
    Worker,
)
from membox_queue.loops import slot, threads
from membox_queue.workers import pool


@pytest.fixture
def background(until):
    """Run a call in a thread and return its future; what is left at the end is stopped."""
    begun = []
    with ThreadPoolExecutor(8) as pool:

        def background(call, *arguments, **options):
            future = pool.submit(call, *arguments, **options)
            begun.append((call.__self__, future))
            return future

        yield background

        def is_over(owner, future):
            owner.stop()
            return future.done()

        for owner, future in begun:
            until(lambda owner=owner, future=future: is_over(owner, future))


@pytest.fixture
def working(queue, background):
    """Let the queue's `work` run in a thread."""
    return lambda handler, **plan: background(queue.work, handler, **plan)


def ended(queue, future):
    """Stop a loop that has begun and return its report."""
    queue.stop()
    return future.result(30)


def nothing(item):
    """Handle an item by doing nothing."""


def failing(item):
    raise LookupError(item.content)


def test_work_handles_what_is_there_and_what_comes_until_it_is_stopped(queue, working, until):
    queue.enqueue("there")
    handled = []
    future = working(lambda item: handled.append(item.content))
    until(lambda: handled == ["there"])
    queue.enqueue("comes")
    until(lambda: queue.counts()["done"] == 2)
    assert ended(queue, future) == DrainReport(done=2, stopped=True)
    assert handled == ["there", "comes"]
    queue.enqueue("after")
    assert queue.get(3).attempt == 0


def test_work_takes_no_worker_lease_and_any_number_may_work(queue, path, background, until):
    both = threading.Barrier(3)
    with Queue(path) as other:
        queue.enqueue_many(["a", "b"])
        futures = [background(one.work, lambda item: both.wait(30) and None) for one in (queue, other)]
        assert not queue.worker_is_alive()
        both.wait(30)
        until(lambda: queue.counts()["done"] == 2)
        assert [ended(one, future).done for one, future in zip((queue, other), futures, strict=True)] == [1, 1]


def test_as_many_items_are_handled_at_once_as_there_are_slots_and_no_more(queue):
    queue.enqueue_many(range(12))
    lock, together = threading.Lock(), threading.Barrier(3)
    running, most = 0, []

    def handler(item):
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        together.wait(30)
        with lock:
            running -= 1

    assert queue.drain(handler, concurrency=3) == DrainReport(done=12)
    assert max(most) == 3


def test_every_item_is_handled_once_whatever_the_concurrency(queue):
    queue.enqueue_many(range(300))
    handled = []
    assert queue.drain(lambda item: handled.append(item.content), concurrency=8) == DrainReport(done=300)
    assert sorted(handled) == list(range(300))
    assert not queue.worker_is_alive()


def test_a_freed_slot_claims_at_once_while_others_are_at_work(queue, working, until):
    queue.enqueue_many(["slow", *range(5)])
    slow = threading.Event()
    future = working(lambda item: slow.wait(30) and None if item.content == "slow" else None, concurrency=2)
    until(lambda: queue.counts()["done"] == 5)
    assert queue.get(1).status == "processing"
    slow.set()
    until(lambda: queue.counts()["done"] == 6)
    assert ended(queue, future).done == 6


def test_items_that_come_together_wake_as_many_idle_slots(queue, working, monkeypatch, until):
    monkeypatch.setattr(threads, "SLICE", 20.0)
    together = threading.Barrier(4)
    idle = threading.Barrier(5)
    queue.enqueue_many(range(4))
    future = working(lambda item: (idle if item.content < 4 else together).wait(10) and None, concurrency=4)
    idle.wait(10)
    until(lambda: queue.counts()["done"] == 4)
    queue.enqueue_many(range(4, 8))
    until(lambda: queue.counts()["done"] + queue.counts()["failed"] == 8)
    assert ended(queue, future) == DrainReport(done=8, stopped=True)


def test_idle_slots_leave_at_once_when_a_drain_is_over(queue, monkeypatch):
    monkeypatch.setattr(threads, "SLICE", 20.0)
    queue.enqueue_many(range(3))
    started = time.monotonic()
    assert queue.drain(nothing, concurrency=8) == DrainReport(done=3)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_limit_ends_the_loop_after_so_many_items(queue, working, concurrency):
    queue.enqueue_many(range(9))
    assert working(nothing, limit=5, concurrency=concurrency).result(30) == DrainReport(done=5)
    assert queue.counts()["pending"] == 4
    assert queue.drain(nothing, limit=3, concurrency=concurrency) == DrainReport(done=3)
    assert not queue.worker_is_alive()


def test_failures_count_for_the_limit(queue):
    queue.enqueue_many(range(3))
    assert queue.drain(failing, limit=2) == DrainReport(failed=2)


class TestBatches:
    @pytest.fixture(autouse=True)
    def groups(self, queue):
        queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "b1", "a2", "a3"))

    def test_a_handler_is_given_all_pending_items_of_a_group_as_a_list(self, queue):
        handed = []

        def handler(items):
            handed.append([(item.content, item.status) for item in items])

        assert queue.drain(handler, batch="group") == DrainReport(done=4)
        assert handed == [[(name, "processing") for name in ("a1", "a2", "a3")], [("b1", "processing")]]

    def test_an_item_without_a_group_comes_by_itself(self, queue):
        queue.enqueue_many(["free", "free"])
        handed = []
        assert queue.drain(lambda items: handed.append(len(items)), batch="group") == DrainReport(done=6)
        assert sorted(handed) == [1, 1, 1, 3]

    def test_groups_and_items_without_one_come_in_one_order(self, queue):
        queue.enqueue("later")
        queue.enqueue("urgent", priority=9)
        handed = []
        queue.drain(lambda items: handed.append(items[0].content), batch="group")
        assert handed == ["urgent", "a1", "b1", "later"]

    def test_a_limit_bounds_the_items_of_a_batch(self, queue):
        handed = []
        assert queue.drain(lambda items: handed.append(len(items)), batch="group", limit=2) == DrainReport(done=2)
        assert handed == [2]

    def test_a_list_of_as_many_results_gives_each_item_its_own(self, queue):
        queue.drain(lambda items: [item.content.upper() for item in items], batch="group")
        assert [item.result for item in queue.items()] == ["A1", "B1", "A2", "A3"]

    def test_any_other_result_is_that_of_all(self, queue):
        queue.drain(lambda items: {"of": len(items)}, batch="group")
        assert [item.result for item in queue.items()] == [{"of": 3}, {"of": 1}, {"of": 3}, {"of": 3}]

    def test_one_result_that_cannot_be_stored_leaves_all_out_and_the_items_are_done(self, queue, caplog):
        results = iter([[1, object(), 3], [4]])
        assert queue.drain(lambda items: next(results), batch="group") == DrainReport(done=4)
        assert [item.result for item in queue.items()] == [None, 4, None, None]
        assert "item 1" in caplog.text

    def test_a_failing_batch_fails_its_first_item_and_gives_the_later_ones_back_uncounted(self, queue):
        def handler(items):
            raise LookupError(items[0].content)

        assert queue.drain(handler, batch="group", limit=3) == DrainReport(failed=1, released=2)
        found = {item.content: (item.status, item.retries, item.error) for item in queue.items(group="a")}
        assert found["a1"] == ("failed", 1, "LookupError: a1")
        assert found["a2"] == found["a3"] == ("pending", 0, None)

    def test_a_failing_batch_is_handled_to_its_end_one_failure_at_a_time(self, queue):
        def handler(items):
            raise LookupError(items[0].content)

        assert queue.drain(handler, batch="group") == DrainReport(failed=4, released=3)
        assert [item.error for item in queue.items(group="a")] == [f"LookupError: a{n}" for n in (1, 2, 3)]

    def test_what_the_handler_finished_before_it_failed_stays_finished(self, queue):
        def handler(items):
            queue.mark_done(items[0], result="mine")
            raise LookupError(items[1].content)

        assert queue.drain(handler, batch="group", limit=3) == DrainReport(done=1, failed=1, released=1)
        found = {item.content: (item.status, item.result) for item in queue.items(group="a")}
        assert found == {"a1": ("done", "mine"), "a2": ("failed", None), "a3": ("pending", None)}

    def test_several_groups_are_handled_at_once(self, queue):
        together = threading.Barrier(2)
        report = queue.drain(lambda items: together.wait(10) and None, batch="group", concurrency=2)
        assert report == DrainReport(done=4)

    def test_every_item_of_a_long_batch_is_kept_alive(self, path, clock, until):
        with Queue(path, lease=0.3) as short:

            def handler(items):
                for _ in range(3):
                    clock.advance(0.29)
                    for item in items:
                        until(lambda item=item: short.get(item.id).lease_until == clock.now + timedelta(seconds=0.4))
                assert short.claim(group="a") is None

            assert short.drain(handler, batch="group", limit=3) == DrainReport(done=3)


def test_middleware_goes_around_the_handler_in_the_order_of_the_list(queue):
    queue.enqueue("x")
    calls = []

    def layer(name):
        def around(item, call_next):
            calls.append(f"{name} {item.content}")
            result = call_next(item)
            calls.append(f"{name} saw {result}")
            return f"{name}({result})"

        return around

    queue.drain(lambda item: calls.append("handler") or "r", middleware=[layer("outer"), layer("inner")])
    assert calls == ["outer x", "inner x", "handler", "inner saw r", "outer saw inner(r)"]
    assert queue.get(1).result == "outer(inner(r))"


def test_middleware_may_answer_itself_catch_and_fail(queue):
    queue.enqueue_many(["answer", "catch", "fail"])

    def around(item, call_next):
        if item.content == "answer":
            return "answered"
        if item.content == "fail":
            raise GiveUp("by middleware")
        try:
            return call_next(item)
        except LookupError:
            return "caught"

    assert queue.drain(failing, middleware=[around]) == DrainReport(done=2, failed=1)
    assert [item.result for item in queue.items()] == ["answered", "caught", None]
    assert queue.get(3).error == "by middleware"


def test_on_error_is_told_of_a_failing_handler_with_its_item(queue):
    queue.enqueue("x")
    told = []
    queue.drain(failing, on_error=lambda error, item, phase: told.append((repr(error), item.id, phase)))
    assert told == [("LookupError('x')", 1, "handler")]


def test_on_error_is_told_of_a_lost_item(queue, clock):
    queue.enqueue("x")
    told = []

    def handler(item):
        clock.advance(61)
        queue.claim()

    report = queue.drain(handler, on_error=lambda error, item, phase: told.append((type(error), item.id, phase)))
    assert report == DrainReport(lost=1)
    assert told == [(StaleClaimError, 1, "lost")]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_on_error_raises_itself_is_logged_and_goes_no_further(queue, caplog, concurrency):
    queue.enqueue_many(range(3))

    def on_error(error, item, phase):
        raise RuntimeError("on_error is broken")

    assert queue.drain(failing, on_error=on_error, concurrency=concurrency) == DrainReport(failed=3)
    assert caplog.text.count("RuntimeError: on_error is broken") == 3


def test_failures_are_logged_by_the_packages_logger(queue, caplog):
    queue.enqueue("x")
    queue.drain(failing)
    assert [(name, level) for name, level, _ in caplog.record_tuples] == [("membox_queue", logging.WARNING)]
    assert "LookupError" in caplog.text


@pytest.mark.parametrize("told", ["on_error", "progress"])
def test_a_failure_that_somebody_is_told_of_is_no_warning(queue, caplog, told):
    queue.enqueue("x")
    with caplog.at_level(logging.INFO, "membox_queue"):
        queue.drain(failing, **{told: lambda *what: None})
    assert [(name, level) for name, level, _ in caplog.record_tuples] == [("membox_queue", logging.INFO)]
    assert "LookupError" in caplog.text


def test_without_exclusive_two_may_drain_together(queue, path, background):
    together = threading.Barrier(2)
    queue.enqueue_many(["a", "b"])
    with Queue(path) as other:
        futures = [
            background(one.drain, lambda item: together.wait(10) and None, exclusive=False) for one in (queue, other)
        ]
        assert [future.result(30) for future in futures] == [DrainReport(done=1)] * 2
        assert not queue.worker_is_alive()


def test_without_exclusive_a_held_lease_does_not_refuse_a_drain(queue, path):
    queue.enqueue("x")
    with Queue(path) as other:
        assert other.acquire_worker_lease()
        assert queue.drain(nothing, exclusive=False) == DrainReport(done=1)
        assert other.refresh_worker_lease()


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_lingering_drain_stays_for_what_falls_due_in_time(queue, background, clock, until, concurrency):
    queue.enqueue_many(["now", NewItem("soon", delay=30), NewItem("late", delay=120)])
    future = background(queue.drain, nothing, linger=timedelta(seconds=60), concurrency=concurrency)
    until(lambda: queue.counts()["done"] == 1)
    assert queue.worker_is_alive()
    clock.advance(29.999)
    assert queue.worker_is_alive()
    clock.advance(0.001)
    # "late" is 90 s away then.
    assert future.result(30) == DrainReport(done=2)
    assert not queue.worker_is_alive()
    assert queue.get(3).status == "pending"


def test_without_linger_a_drain_does_not_stay(queue):
    queue.enqueue("soon", delay=30)
    assert queue.drain(nothing) == DrainReport()


def test_a_lingering_drain_stays_for_its_own_retries(queue, background, clock, until):
    queue.enqueue("x")

    def handler(item):
        if item.attempt == 1:
            raise RetryLater(20)

    future = background(queue.drain, handler, linger=60)
    until(lambda: queue.get(1).retries == 1)
    clock.advance(20)
    assert future.result(30) == DrainReport(done=1, postponed=1)


def test_a_lingering_drain_ends_when_it_is_stopped(queue, background, clock, until):
    queue.enqueue_many(["now", NewItem("soon", delay=30)])
    future = background(queue.drain, nothing, linger=60)
    until(lambda: queue.counts()["done"] == 1)
    assert ended(queue, future) == DrainReport(done=1, stopped=True)
    assert not queue.worker_is_alive()


def test_a_progress_callable_is_told_what_happens_to_each_item(queue):
    queue.enqueue_many(["ok", "bad", "later"])
    events = []

    def handler(item):
        if item.content == "bad":
            raise LookupError
        if item.content == "later":
            raise RetryLater(60)

    queue.drain(handler, progress=events.append)
    assert all(isinstance(event, LoopEvent) for event in events)
    kinds = [(event.kind, event.item.content) for event in events]
    assert kinds == [
        ("claimed", "ok"),
        ("done", "ok"),
        ("claimed", "bad"),
        ("failed", "bad"),
        ("claimed", "later"),
        ("postponed", "later"),
    ]


def test_what_a_progress_callable_raises_is_logged_and_goes_no_further(queue, caplog):
    queue.enqueue("x")

    def progress(event):
        raise RuntimeError("no terminal")

    assert queue.drain(nothing, progress=progress) == DrainReport(done=1)
    assert "no terminal" in caplog.text


def test_progress_true_is_silent_where_there_is_no_terminal(queue, capfd):
    queue.enqueue("x")
    assert queue.drain(nothing, progress=True) == DrainReport(done=1)
    assert capfd.readouterr() == ("", "")


def test_progress_true_does_no_harm_where_there_is_no_standard_error(queue, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    assert queue.drain(nothing, progress=True) == DrainReport()


# The thread that redraws the bar may end by it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_terminal_that_is_gone_does_not_end_the_work(queue, monkeypatch):
    class Gone(io.StringIO):
        is_gone = False

        def isatty(self):
            return True

        def write(self, text):
            if self.is_gone:
                raise OSError(5, "Input/output error")
            return super().write(text)

    terminal = Gone()
    monkeypatch.setattr("sys.stderr", terminal)
    queue.enqueue_many(range(3))

    def handler(item):
        terminal.is_gone = True
        if item.id == 2:
            raise LookupError("said above the bar")

    assert queue.drain(handler, progress=True) == DrainReport(done=2, failed=1)


@pytest.mark.parametrize("max_runtime", [0.05, timedelta(milliseconds=50)])
def test_a_handler_that_runs_longer_than_max_runtime_loses_its_item_when_the_lease_ends(path, until, max_runtime):
    with Queue(path, lease=0.3) as queue:
        queue.enqueue("x")
        successors = []

        def handler(item):
            successors.append(until(queue.claim))
            assert item.lost

        assert queue.drain(handler, max_runtime=max_runtime) == DrainReport(lost=1)
        assert queue.mark_done(successors[0])
        assert queue.get(1).retries == 1


def test_max_runtime_does_not_end_a_handler_that_is_within_its_lease(queue):
    queue.enqueue("x")
    assert queue.drain(lambda item: time.sleep(0.05), max_runtime=0.01) == DrainReport(done=1)


class Writer:
    """Somebody else who holds the write lock until the loop has complained."""

    def __init__(self, writer):
        self.let_go = writer()
        self.told = []

    def on_error(self, error, item, phase):
        self.told.append((type(error), item and item.id, phase))
        if self.let_go:
            self.let_go()
            self.let_go = None


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


def test_a_store_that_is_busy_at_the_end_of_an_item_is_tried_again_and_nothing_runs_twice(path, writer):
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


def test_what_a_handler_did_is_recorded_however_long_another_process_holds_the_write_lock(path, writer, monkeypatch):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue:
        queue.enqueue("x")
        told, let_go = [], []

        def handler(item):
            let_go.append(writer())
            return "result"

        def on_error(error, item, phase):
            told.append(phase)
            if len(told) == 12:
                let_go[0]()

        assert queue.drain(handler, on_error=on_error) == DrainReport(done=1)
        assert (queue.get(1).result, queue.get(1).attempt, set(told)) == ("result", 1, {"finish"})


def test_a_drain_gives_up_on_a_store_that_stays_busy_and_work_does_not(path, writer, background, monkeypatch, until):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue:
        queue.enqueue("x")
        let_go = writer()
        with pytest.raises(QueueBusyError):
            queue.drain(nothing, exclusive=False)
        told = []
        future = background(queue.work, nothing, on_error=lambda *what: told.append(what))
        until(lambda: len(told) > 8)
        let_go()
        until(lambda: queue.counts()["done"] == 1)
        assert ended(queue, future).done == 1


def test_a_drain_that_ended_because_it_could_not_record_leaves_no_live_lease(path, membox_faults, writer, monkeypatch):
    hurry(monkeypatch)
    with Queue(path, busy_timeout=0.01) as queue, Queue(path) as other:
        queue.enqueue("x")
        let_go = []
        membox_faults.disk_full("finish", times=1000)

        def on_error(error, item, phase):
            # From now on nothing can be written at all.
            if not let_go:
                let_go.append(writer())

        with pytest.raises(DiskFullError):
            queue.drain(nothing, on_error=on_error)
        assert not queue.worker_is_alive()
        assert not other.worker_is_alive()
        let_go[0]()
        membox_faults.disarm()
        assert not queue.drain(nothing).refused


def test_a_drain_that_cannot_bring_failed_items_back_leaves_no_lease_behind(path):
    class Broken(Queue):
        def retry_failed(self, *arguments, **options):
            raise QueueBusyError("somebody else writes")

    with Broken(path) as queue:
        queue.enqueue("x")
        with pytest.raises(QueueBusyError):
            queue.drain(nothing, retry_failed=True)
        assert not queue.worker_is_alive()


def test_retention_is_looked_after_while_a_loop_has_nothing_to_do(path, background, clock, monkeypatch, until):
    monkeypatch.setattr(slot, "MAINTAIN_EVERY", 0.0)
    monkeypatch.setattr(threads, "SLICE", 0.02)
    with Queue(path, keep_for=60) as queue:
        queue.enqueue("x")
        future = background(queue.work, nothing)
        until(lambda: queue.counts()["done"] == 1)
        clock.advance(61)
        until(lambda: queue.get(1) is None)
        assert ended(queue, future).done == 1


def test_a_schedule_that_ticks_wakes_a_loop(queue, working, clock, until):
    queue.schedule("tick", "x", every=60)
    handled = []
    future = working(lambda item: handled.append(item.content))
    for count in (1, 2):
        clock.advance(60)
        until(lambda count=count: len(handled) == count)
    assert ended(queue, future).done == 2


def test_stop_before_anything_runs_is_nothing(queue):
    queue.enqueue("x")
    queue.stop()
    assert queue.drain(nothing) == DrainReport(done=1)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_handler_may_stop_its_own_loop(queue, concurrency):
    queue.enqueue_many(range(20))
    report = queue.drain(lambda item: queue.stop(), concurrency=concurrency)
    assert report.stopped
    assert 1 <= report.done <= concurrency
    assert report.done + queue.counts()["pending"] == 20
    assert not queue.worker_is_alive()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_file_that_is_moved_away_is_noticed_while_idle_and_work_goes_on_when_it_is_back(
    queue, path, working, until, concurrency
):
    told = []
    future = working(nothing, concurrency=concurrency, on_error=lambda error, item, phase: told.append((error, phase)))
    queue.wait(queue.enqueue("before"), 30)
    path.rename(path.with_suffix(".away"))
    # A look that was under way in that moment may meet an error of its own first.
    until(lambda: any("removed or replaced" in str(error) for error, _ in told))
    assert {(isinstance(error, StorageError), phase) for error, phase in told} == {(True, "claim")}
    path.with_suffix(".away").rename(path)
    assert queue.wait(queue.enqueue("after"), 30).status == "done"
    assert ended(queue, future) == DrainReport(done=2, stopped=True)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_runs_when_the_grace_is_over_is_given_back_uncounted(queue, working, until, concurrency):
    queue.enqueue("slow")
    began, free = threading.Event(), threading.Event()

    def handler(item):
        began.set()
        free.wait(30)

    future = working(handler, concurrency=concurrency, grace=timedelta(milliseconds=50))
    assert began.wait(30)
    queue.stop()
    until(lambda: queue.get(1).status == "pending")
    assert (queue.get(1).retries, queue.get(1).attempt) == (0, 1)
    free.set()
    assert future.result(30) == DrainReport(released=1, stopped=True)
    assert queue.get(1).status == "pending"


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_handler_that_goes_on_after_the_grace_learns_that_its_claim_is_gone(queue, working, until, concurrency):
    queue.enqueue("slow")
    told = []

    def handler(item):
        told.append(item.lost)
        until(lambda: item.lost)
        with pytest.raises(StaleClaimError):
            item.check()
        told.append(queue.mark_done(item))

    future = working(handler, concurrency=concurrency, grace=0.05)
    until(lambda: told)
    queue.stop()
    assert future.result(30) == DrainReport(released=1, stopped=True)
    until(lambda: told == [False, False])


class TestWorker:
    @pytest.fixture
    def queues(self, path):
        with Queue(path, "ingest") as ingest, Queue(path, "emails") as emails, Queue(path, "other") as other:
            yield ingest, emails, other

    @pytest.fixture
    def worker(self, path):
        made = []

        def worker(handlers, **options):
            made.append(Worker(path, handlers, **options))
            return made[-1]

        yield worker
        for one in made:
            one.stop()

    def test_one_pool_serves_several_queues_each_with_its_handler(self, queues, worker, until):
        ingest, emails, _ = queues
        handled = []
        one = worker(
            {
                "ingest": lambda item: handled.append(("ingest", item.content)),
                "emails": lambda item: handled.append(("emails", item.content)),
            }
        )
        ingest.enqueue_many([1, 2])
        one.start()
        until(lambda: ingest.counts()["done"] == 2)
        emails.enqueue(3)
        until(lambda: emails.counts()["done"] == 1)
        assert one.stop() == DrainReport(done=3, stopped=True)
        assert handled == [("ingest", 1), ("ingest", 2), ("emails", 3)]

    def test_no_queue_starves_another(self, queues, worker):
        ingest, emails, _ = queues
        ingest.enqueue_many(range(10))
        emails.enqueue_many(range(10))
        handled = []
        one = worker({name: lambda item: handled.append(item.queue) for name in ("ingest", "emails")}, limit=10)
        assert one.run() == DrainReport(done=10)
        assert handled.count("ingest") == handled.count("emails") == 5

    def test_the_turn_of_an_idle_queue_does_not_go_to_its_neighbour(self, queues, worker):
        _, emails, other = queues
        emails.enqueue_many(range(6))
        other.enqueue_many(range(6))
        seen = []
        handlers = dict.fromkeys(["idle", "ingest", "emails", "other"], lambda item: seen.append(item.queue))
        worker(handlers).drain()
        assert seen == ["emails", "other"] * 6

    def test_a_queue_without_a_handler_is_left_alone(self, queues, worker):
        ingest, _, other = queues
        other.enqueue("theirs")
        ingest.enqueue("ours")
        assert worker({"ingest": nothing}, limit=1).run() == DrainReport(done=1)
        assert other.get(1).attempt == 0

    def test_the_pool_is_shared_by_all_queues(self, queues, worker, until):
        ingest, emails, _ = queues
        together = threading.Barrier(3)
        wait = lambda item: together.wait(30) and None  # noqa: E731
        one = worker({"ingest": wait, "emails": wait}, concurrency=2)
        ingest.enqueue("a")
        emails.enqueue("b")
        emails.enqueue("c")
        one.start()
        until(lambda: ingest.counts()["processing"] + emails.counts()["processing"] == 2)
        assert ingest.counts()["pending"] + emails.counts()["pending"] == 1
        together.wait(30)
        until(lambda: ingest.counts()["done"] + emails.counts()["done"] == 2)
        together.reset()
        one.loop.stop()

    def test_starting_and_stopping_twice_is_once_and_it_may_start_again(self, queues, worker, until):
        ingest = queues[0]
        one = worker({"ingest": nothing})
        assert one.stop() is None
        for number in (1, 2):
            one.start()
            one.start()
            ingest.enqueue(number)
            until(lambda number=number: ingest.counts()["done"] == number)
            assert one.stop() == DrainReport(done=1, stopped=True)
            assert one.stop() is None

    def test_one_that_has_ended_by_itself_can_be_started_again(self, queues, worker, until):
        ingest = queues[0]
        one = worker({"ingest": nothing}, limit=1)
        for number in (1, 2):
            ingest.enqueue(number)
            one.start()
            until(lambda number=number: ingest.counts()["done"] == number)
            until(lambda: one.loop is None)
        assert one.stop() == DrainReport(done=1)

    def test_one_whose_loop_has_just_ended_serves_again(self, queues, worker, until, monkeypatch):
        ingest = queues[0]
        one = worker({"ingest": nothing}, limit=1)
        closing, free = threading.Event(), threading.Event()
        close = pool.close_queue

        def slowly(queue):
            closing.set()
            assert free.wait(30)
            close(queue)

        monkeypatch.setattr(pool, "close_queue", slowly)
        ingest.enqueue(1)
        one.start()
        assert closing.wait(30)
        ingest.enqueue(2)
        with ThreadPoolExecutor() as threads:
            started = threads.submit(one.start)
            free.set()
            started.result(30)
        until(lambda: ingest.counts()["done"] == 2)

    def test_a_start_while_it_stops_starts_it_again(self, queues, worker, until):
        ingest = queues[0]
        began, free = threading.Event(), threading.Event()

        def handler(item):
            began.set()
            assert free.wait(30)

        one = worker({"ingest": handler})
        one.start()
        ingest.enqueue(1)
        assert began.wait(30)
        first = one.loop
        with ThreadPoolExecutor() as threads:
            stopped = threads.submit(one.stop)
            until(lambda: first.stop_asked)
            started = threads.submit(one.start)
            free.set()
            started.result(30)
            assert stopped.result(30) == DrainReport(done=1, stopped=True)
        assert ingest.wait(ingest.enqueue(2), 30).status == "done"
        assert one.stop() == DrainReport(done=1, stopped=True)

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_cannot_start_it_again_while_it_stops(self, queues, worker, concurrency):
        ingest = queues[0]

        def handler(item):
            one.stop()
            one.start()

        one = worker({"ingest": handler}, concurrency=concurrency)
        one.start()
        assert "it is stopping" in ingest.wait(ingest.enqueue(1), 30).error

    def test_what_ended_it_is_raised_by_a_start_that_comes_before_stop(self, queues, worker, until):
        def handler(item):
            raise SystemExit(3)

        one = worker({"ingest": handler})
        one.start()
        queues[0].enqueue("x", max_retries=1)
        until(lambda: one.loop is None)
        with pytest.raises(SystemExit):
            one.start()
        one.start()
        assert one.stop() == DrainReport(stopped=True)

    def test_it_cannot_run_twice_at_once(self, queues, worker):
        one = worker({"ingest": nothing})
        one.start()
        with pytest.raises(RuntimeError, match="running already"):
            one.run()

    def test_each_queue_has_options_of_its_own(self, queues, worker, until):
        ingest, emails, _ = queues
        options = {"ingest": {"lease": 5, "worker": "anna"}, "emails": {"lease": 500, "worker": "berta"}}
        ingest.enqueue("a")
        emails.enqueue("b")
        seen = {}

        def handler(item):
            seen[item.queue] = (item.worker, item.lease_until - item.started_at)

        assert worker({"ingest": handler, "emails": handler}, options=options, limit=2).run().done == 2
        assert seen == {"ingest": ("anna", timedelta(seconds=5)), "emails": ("berta", timedelta(seconds=500))}

    def test_what_is_configured_in_the_file_holds_for_it(self, queues, worker):
        ingest = queues[0]
        ingest.configure(lease=7)
        ingest.enqueue("a")
        leases = []
        worker({"ingest": lambda item: leases.append(item.lease_until - item.started_at)}, limit=1).run()
        assert leases == [timedelta(seconds=7)]

    def test_a_failing_item_of_one_queue_uses_that_queues_settings(self, queues, worker):
        ingest, emails, _ = queues
        ingest.enqueue("a")
        emails.enqueue("b")
        options = {"emails": {"max_retries": 1}}
        worker({"ingest": failing, "emails": failing}, options=options, limit=2).run()
        assert (ingest.retry_failed(), emails.retry_failed(max_retries=None)) == (1, 1)

    def test_the_size_limit_of_a_result_is_that_of_its_queue(self, queues, worker, caplog):
        ingest, emails, _ = queues
        ingest.enqueue("a")
        emails.enqueue("b")
        options = {"ingest": {"max_bytes": 10}}
        handlers = {"ingest": lambda item: None, "emails": lambda item: "r" * 100}
        worker(handlers, options=options, limit=2).run()
        assert emails.get(2).result == "r" * 100

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_may_stop_it(self, queues, worker, until, concurrency):
        ingest = queues[0]
        ingest.enqueue_many(range(20))
        one = worker({"ingest": lambda item: one.stop()}, concurrency=concurrency)
        one.start()
        until(lambda: one.loop is None)
        assert ingest.counts()["failed"] == 0
        report = one.stop()
        assert 1 <= report.done <= concurrency
        assert report == DrainReport(done=report.done, stopped=True)

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_that_does_not_end_is_not_waited_for_longer_than_the_grace(self, queues, worker, concurrency):
        ingest = queues[0]
        ingest.enqueue("x")
        began, free = threading.Event(), threading.Event()

        def handler(item):
            began.set()
            free.wait(60)

        one = worker({"ingest": handler}, concurrency=concurrency, grace=0.05)
        try:
            one.start()
            assert began.wait(30)
            assert one.stop() == DrainReport(released=1, stopped=True)
            assert not free.is_set()
            one.start()
        finally:
            free.set()

    def test_it_serves_for_as_long_as_a_block_runs(self, path, queues):
        with Worker(path, {"ingest": nothing}) as one:
            assert queues[0].wait(queues[0].enqueue("x"), 30).status == "done"
        assert one.stop() is None

    def test_what_ended_it_is_raised_by_stop(self, queues, worker, until):
        ingest = queues[0]

        def handler(item):
            raise SystemExit(3)

        one = worker({"ingest": handler})
        one.start()
        ingest.enqueue("x")
        until(lambda: one.loop is None)
        with pytest.raises(SystemExit):
            one.stop()
        assert one.stop() is None
        assert (ingest.get(1).status, ingest.get(1).retries) == ("pending", 1)

    @pytest.mark.parametrize(
        ("handlers", "options", "wrong"),
        [({}, {}, ValueError), ({"a": nothing}, {"b": {}}, ValueError), ({"a": "name"}, {}, TypeError)],
    )
    def test_a_worker_that_makes_no_sense_is_refused(self, path, handlers, options, wrong):
        with pytest.raises(wrong):
            Worker(path, handlers, options=options).run()

    @pytest.mark.parametrize("plan", [{"exclusive": True}, {"patience": 3}])
    def test_what_it_does_not_take_is_refused_by_name(self, path, plan):
        with pytest.raises(TypeError, match=next(iter(plan))):
            Worker(path, {"a": nothing}, **plan)


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
def test_a_handler_learns_that_its_loop_was_asked_to_stop(queue, until, concurrency):
    before = []

    def in_steps(item):
        before.append(item.stopping)
        until(lambda: item.stopping)
        raise RetryLater(0, count=False)

    queue.enqueue("x")
    with ThreadPoolExecutor() as threads:
        working = threads.submit(queue.work, in_steps, concurrency=concurrency)
        until(lambda: before)
        queue.stop()
        assert working.result(30) == DrainReport(released=1, stopped=True)
    assert before == [False]
    assert queue.claim().stopping is False


def test_a_loop_that_ends_by_itself_was_not_asked_to_stop(queue):
    seen = []
    queue.enqueue("x")
    queue.drain(lambda item: seen.append(item.stopping), limit=1)
    assert seen == [False]
