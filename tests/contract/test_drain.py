"""drain: claim and handle until nothing is due, then return."""

import asyncio
import contextlib
import logging
import sys
import threading
from datetime import timedelta

import pytest
from loops_in_threads import nothing
from membox_queue import (
    DrainReport,
    GiveUp,
    Queue,
    QueueBusyError,
    Retry,
    RetryLater,
)
from programs import PROGRAMS


def raising(error):
    """A handler that raises."""

    def handler(item):
        raise error

    return handler


def test_everything_that_is_due_is_handled_in_order_and_reported(queue):
    queue.enqueue_many(["a", "b", "c"])
    queue.enqueue("first", priority=1)
    queue.enqueue("later", delay=60)
    handled = []
    assert queue.drain(lambda item: handled.append(item.content)) == DrainReport(done=4)
    assert handled == ["first", "a", "b", "c"]
    assert queue.counts()["done"] == 4


def test_an_empty_queue_is_drained_at_once(queue):
    assert queue.drain(raising(AssertionError)) == DrainReport()
    assert not queue.worker_is_alive()


def test_a_handler_sees_a_claimed_item_and_a_live_worker(queue, open_queue):
    queue.enqueue("x")
    seen = []

    def handler(item):
        with open_queue() as other:
            seen.append((item.status, item.attempt, item.lost, other.worker_is_alive(), other.claim()))

    queue.drain(handler)
    assert seen == [("processing", 1, False, True, None)]


def test_the_lease_is_free_when_nothing_is_left(queue, open_queue):
    queue.enqueue("x")
    queue.drain(lambda item: None)
    assert not queue.worker_is_alive()
    with open_queue() as other:
        assert other.acquire_worker_lease()


def test_what_the_handler_returns_is_the_result(queue):
    queue.enqueue_many(["dict", "none"])
    queue.drain(lambda item: {"of": item.content} if item.content == "dict" else None)
    assert [item.result for item in queue.items()] == [{"of": "dict"}, None]


@pytest.mark.parametrize("result", [object(), float("nan"), {1: 2}, "\ud800", "r" * 200])
def test_a_result_that_cannot_be_stored_is_left_out_and_the_item_is_done(open_queue, caplog, result):
    with open_queue(max_bytes=100) as queue:
        queue.enqueue_many(["a", "b"])
        assert queue.drain(lambda item: result) == DrainReport(done=2, unstored=2)
        assert [(item.status, item.result) for item in queue.items()] == [("done", None)] * 2
    warnings = [message for _, level, message in caplog.record_tuples if level == logging.WARNING]
    assert len(warnings) == 2
    assert "item 1" in warnings[0]


def test_a_failing_item_does_not_stop_the_others(queue):
    queue.enqueue_many([2, 0, 1])
    assert queue.drain(lambda item: 1 / item.content) == DrainReport(done=2, failed=1)
    assert queue.get(2).error == "ZeroDivisionError: division by zero"


def test_with_a_policy_a_failed_item_is_postponed_until_it_is_exhausted(open_queue, clock):
    with open_queue(retry=Retry(max=2, base=30, jitter=0)) as queue:
        queue.enqueue("x")
        assert queue.drain(raising(ValueError("boom"))) == DrainReport(postponed=1)
        assert queue.drain(raising(ValueError("boom"))) == DrainReport()
        clock.advance(30)
        assert queue.drain(raising(ValueError("boom"))) == DrainReport(failed=1)


def test_retry_later_puts_the_item_off_and_counts(queue, clock):
    queue.enqueue("x")
    assert queue.drain(raising(RetryLater(30))) == DrainReport(postponed=1)
    item = queue.get(1)
    assert (item.retries, item.run_at) == (1, clock.now + timedelta(seconds=30))
    assert "30" in item.error


def test_an_item_that_asks_to_come_again_outlives_its_worker_at_any_moment(queue, address, start):
    id = queue.enqueue("the mailbox", key="poll")
    start(PROGRAMS / "poll_and_die.py", address).wait()
    assert queue.counts()["done"] == 0
    item = queue.claim()
    assert (item.id, item.key, item.attempt) == (id, "poll", 4)


def test_retry_later_cannot_go_on_for_ever(queue, clock):
    queue.enqueue("x")
    assert queue.drain(raising(RetryLater(0, reason="rate limit"))) == DrainReport(postponed=2, failed=1)
    assert queue.get(1).error == "rate limit"


def test_retry_later_need_not_count(queue, clock):
    queue.enqueue("x")
    for _ in range(5):
        assert queue.drain(raising(RetryLater(timedelta(minutes=1), count=False))) == DrainReport(released=1)
        clock.advance(60)
    item = queue.get(1)
    assert (item.status, item.retries, item.error) == ("pending", 0, None)


def test_the_reason_of_a_retry_that_does_not_count_stands_in_the_history(queue):
    queue.enqueue("x")
    queue.drain(raising(RetryLater(60, count=False, reason="quota")))
    (attempt,) = queue.history(1)
    assert (attempt.ending, attempt.error) == ("released", "quota")


def test_retry_later_raised_from_an_error_stores_that_error(queue):
    def handler(item):
        raise RetryLater(5) from ConnectionError("refused")

    queue.enqueue("x")
    queue.drain(handler)
    assert queue.get(1).error == "ConnectionError: refused"


@pytest.mark.parametrize("seconds", [-1, "soon"])
def test_retry_later_with_a_time_that_is_none_fails_the_item_and_not_the_drain(queue, seconds):
    queue.enqueue_many(["bad", "good"])
    handled = []

    def handler(item):
        handled.append(item.content)
        if item.content == "bad":
            raise RetryLater(seconds)

    assert queue.drain(handler) == DrainReport(done=1, failed=1)
    assert handled == ["bad", "good"]


def test_give_up_is_final_whatever_the_policy_allows(open_queue):
    with open_queue(retry=Retry()) as queue:
        queue.enqueue_many(["a", "b"])
        report = queue.drain(lambda item: raising(GiveUp("unreadable") if item.id == 1 else GiveUp())(item))
        assert report == DrainReport(failed=2)
        assert queue.get(1).error == "unreadable"
        assert "gave up" in queue.get(2).error
        assert queue.retry_failed() == 0


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_item_whose_handler_always_leaves_the_program_comes_to_rest_as_failed(queue, caplog, concurrency):
    queue.enqueue_many(["a", "b"])
    for retries in (1, 2, 3):
        with pytest.raises(SystemExit):
            queue.drain(lambda item: sys.exit(7) if item.id == 1 else item.content, concurrency=concurrency)
        assert (queue.get(1).retries, queue.get(1).error) == (retries, "SystemExit: 7")
        assert not queue.worker_is_alive()
    assert queue.get(1).status == "failed"
    assert [attempt.ending for attempt in queue.history(1)] == ["postponed", "postponed", "failed"]
    assert caplog.text.count("the handler of item 1 exited the program") == 3
    queue.drain(lambda item: None)
    assert (queue.get(2).status, queue.get(2).retries) == ("done", 0)


def test_an_interrupt_gives_the_item_back_uncounted_and_propagates(queue):
    queue.enqueue_many(["a", "b"])
    with pytest.raises(KeyboardInterrupt):
        queue.drain(raising(KeyboardInterrupt()))
    item = queue.get(1)
    assert (item.status, item.retries, item.error, item.worker) == ("pending", 0, None, None)
    assert queue.get(2).attempt == 0
    assert not queue.worker_is_alive()
    assert queue.drain(lambda item: None) == DrainReport(done=2)


class PanicException(BaseException):
    """As native code raises it that panics: no `Exception`."""


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("error", [PanicException("index out of bounds"), asyncio.CancelledError(), GeneratorExit()])
def test_what_is_no_exception_and_stops_no_program_is_a_failure_like_any_other(open_queue, error, concurrency):
    with open_queue(retry=Retry(max=2, base=0)) as queue:
        queue.enqueue_many(["poison", "sound"])
        report = queue.drain(lambda item: item.id == 1 and raising(error)(item), concurrency=concurrency)
        assert report == DrainReport(done=1, failed=1, postponed=1)
        assert queue.get(1).error.startswith(type(error).__name__)


class HostileError(Exception):
    """Every attribute that a report could ask for raises; so do those of the next two."""

    def refuse(self, *_):
        raise LookupError("no attribute for you")

    __str__ = __repr__ = add_note = refuse
    __class__ = __cause__ = __context__ = __traceback__ = __notes__ = reason = property(refuse)


class HostileBaseError(HostileError, BaseException):
    def refuse(self, *_):
        raise PanicException("no attribute for you")

    __str__ = __repr__ = add_note = refuse
    __class__ = __cause__ = __context__ = __traceback__ = __notes__ = reason = property(refuse)


class HostileGroup(ExceptionGroup):
    exceptions = property(HostileError.refuse)
    derive = subgroup = split = __str__ = HostileError.refuse


class HostileGiveUp(GiveUp):
    reason = property(HostileError.refuse, lambda self, value: None)
    __str__ = HostileError.refuse


class HostileType(type):
    def __getattribute__(cls, name):
        if name in ("__qualname__", "__name__", "__module__"):
            raise RuntimeError("not even its type tells its name")
        return super().__getattribute__(name)


class NamelessError(Exception, metaclass=HostileType):
    pass


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_exception_whose_type_does_not_tell_its_name_fails_its_item_and_the_loop_goes_on(queue, concurrency):
    queue.enqueue_many(["poison", "sound"])
    report = queue.drain(lambda item: item.id == 1 and raising(NamelessError())(item), concurrency=concurrency)
    assert (report.done, report.failed) == (1, 1)
    assert queue.get(1).retries == 1


def test_an_exit_by_on_error_comes_after_the_failure_was_recorded(queue):
    queue.enqueue_many(["poison", "sound"])
    with pytest.raises(SystemExit):
        queue.drain(raising(LookupError("no")), on_error=lambda error, item, phase: sys.exit(3))
    assert [(item.status, item.retries) for item in queue.items()] == [("failed", 1), ("pending", 0)]
    assert not queue.worker_is_alive()


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(
    "kind", [HostileError, HostileBaseError, HostileGroup, HostileGiveUp], ids=lambda kind: kind.__name__
)
def test_an_exception_whose_attributes_raise_fails_its_item_and_the_loop_goes_on(open_queue, kind, told, concurrency):
    with open_queue(retry=Retry(max=2, base=0)) as queue:
        error = kind("of tasks", [ValueError()]) if kind is HostileGroup else kind()
        queue.enqueue_many(["poison", "sound"])
        on_error = (lambda error, item, phase: str(error)) if told else None
        report = queue.drain(
            lambda item: item.id == 1 and raising(error)(item), concurrency=concurrency, on_error=on_error
        )
        assert (report.done, report.failed) == (1, 1)
        assert queue.get(1).error.startswith(type(error).__name__)
        assert not queue.worker_is_alive()


def test_an_exit_in_a_group_of_exceptions_is_an_exit(queue):
    queue.enqueue("x")
    with pytest.raises(BaseExceptionGroup):
        queue.drain(raising(BaseExceptionGroup("of tasks", [BaseExceptionGroup("inner", [SystemExit(3)])])))
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 1)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_whose_attributes_raise_means_the_same_for_its_item(queue, stop):
    queue.enqueue("x")
    # pytest.raises would ask for its attributes; contextlib does, and tells of that instead.
    with contextlib.suppress(BaseException):
        queue.drain(raising(type("Hostile", (HostileError, stop), {})()))
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", int(stop is SystemExit))
    assert not queue.worker_is_alive()


def test_an_interrupt_in_a_group_of_exceptions_is_an_interrupt(queue):
    queue.enqueue("x")
    with pytest.raises(BaseExceptionGroup):
        queue.drain(raising(BaseExceptionGroup("of tasks", [ValueError(), KeyboardInterrupt()])))
    assert (queue.get(1).status, queue.get(1).retries) == ("pending", 0)


def test_another_live_worker_means_refused_and_nothing_done(queue, open_queue):
    queue.enqueue("x")
    with open_queue() as other:
        other.acquire_worker_lease()
        assert queue.drain(raising(AssertionError), retry_failed=True) == DrainReport(refused=True)
        assert queue.get(1).attempt == 0
        assert other.release_worker_lease()
    assert queue.drain(lambda item: None) == DrainReport(done=1)


def test_a_drain_inside_a_handler_is_refused(queue):
    queue.enqueue_many(["a", "b"])
    inner = []
    assert queue.drain(lambda item: inner.append(queue.drain(raising(AssertionError)))) == DrainReport(done=2)
    assert inner == [DrainReport(refused=True)] * 2


def test_items_enqueued_during_the_drain_are_drained_too(queue):
    queue.enqueue(3)
    assert queue.drain(lambda item: item.content and queue.enqueue(item.content - 1)) == DrainReport(done=4)


def test_failed_items_are_brought_back_first_if_asked(queue):
    queue.enqueue_many(["a", "b"])
    assert queue.drain(raising(ValueError("boom"))) == DrainReport(failed=2)
    assert queue.drain(lambda item: None) == DrainReport()
    assert queue.drain(lambda item: None, retry_failed=True) == DrainReport(retried=2, done=2)


def test_an_expired_claim_of_a_vanished_worker_is_drained(queue, clock):
    queue.enqueue("x")
    queue.claim()
    assert queue.drain(lambda item: None) == DrainReport()
    clock.advance(60)
    assert queue.drain(lambda item: item.retries) == DrainReport(done=1)
    assert queue.get(1).result == 1


def test_a_handler_longer_than_several_leases_keeps_its_item(open_queue, clock, until):
    with open_queue(lease=0.3) as queue:
        queue.enqueue("x")

        def handler(item):
            for _ in range(4):
                clock.advance(0.29)
                until(
                    lambda: queue.get(item.id).lease_until == clock.now + timedelta(seconds=0.4)
                )  # and a beat of grace
                assert queue.claim() is None

        assert queue.drain(handler) == DrainReport(done=1)
        assert (queue.get(1).attempt, queue.get(1).retries) == (1, 0)


def test_an_item_lost_during_its_handler_is_reported_and_left_to_its_successor(queue, clock):
    queue.enqueue("x")
    successors = []

    def handler(item):
        clock.advance(61)
        successors.append(queue.claim())
        assert item.lost

    assert queue.drain(handler) == DrainReport(lost=1)
    assert queue.get(1).status == "processing"
    assert queue.mark_done(successors[0])


def test_a_worker_whose_lease_was_taken_over_records_its_item_and_stops(open_queue, clock):
    with open_queue(lease=1000) as queue, open_queue() as other:
        queue.enqueue_many(["a", "b"])

        def handler(item):
            clock.advance(61)
            assert other.acquire_worker_lease()

        assert queue.drain(handler) == DrainReport(done=1)
        assert queue.get(2).attempt == 0
        assert other.refresh_worker_lease()


def test_a_queue_closed_by_its_handler_leaves_the_item_to_the_next_worker(open_queue, clock):
    queue = open_queue()
    queue.enqueue("x")
    with pytest.raises(Exception, match="closed"):
        queue.drain(lambda item: queue.close())
    clock.advance(61)
    with open_queue() as queue:
        assert queue.drain(lambda item: None) == DrainReport(done=1)


@pytest.mark.parametrize("handler", [None, "module:handler", 5])
def test_a_handler_is_callable(queue, handler):
    queue.enqueue("x")
    with pytest.raises(TypeError, match="handler"):
        queue.drain(handler)
    assert not queue.worker_is_alive()
    assert queue.get(1).attempt == 0


def test_a_coroutine_function_is_refused_before_anything_is_claimed(queue):
    async def handler(item):
        raise AssertionError("never awaited")

    queue.enqueue("x")
    with pytest.raises(TypeError, match="plain function"):
        queue.drain(handler)
    assert queue.get(1).attempt == 0


def test_a_handler_that_records_the_end_itself_is_reported_as_it_said(queue):
    queue.enqueue_many(["done", "failed", "released", "with"])

    def handler(item):
        if item.content == "done":
            queue.mark_done(item, result="its own")
        elif item.content == "failed":
            queue.mark_failed(item, "its own")
        elif item.content == "released":
            queue.release(item, delay=60)
        else:
            with item:
                pass

    report = queue.drain(handler)
    assert (report.done, report.failed, report.released, report.lost) == (2, 1, 1, 0)
    assert queue.get(1).result == "its own"


def test_what_a_handler_asks_for_is_logged_without_a_traceback(queue, caplog):
    def handler(item):
        if item.content == "later":
            raise RetryLater(60, reason="the model is busy")
        if item.content == "because":
            raise RetryLater(60) from ConnectionError("no answer")
        raise GiveUp("no text in it")

    caplog.set_level(logging.INFO, logger="membox_queue")
    queue.enqueue_many(["later", "never", "because"])
    queue.drain(handler)
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    _, later, never, because, _ = caplog.records
    assert (later.getMessage(), later.exc_info) == ("item 1 put off: the model is busy", None)
    assert (never.getMessage(), never.exc_info) == ("item 2 given up: no text in it", None)
    assert because.exc_info[0] is ConnectionError


def test_without_exclusive_two_may_drain_together(queue, open_queue, background):
    together = threading.Barrier(2)
    queue.enqueue_many(["a", "b"])
    with open_queue() as other:
        futures = [
            background(one.drain, lambda item: together.wait(10) and None, exclusive=False) for one in (queue, other)
        ]
        assert [future.result(30) for future in futures] == [DrainReport(done=1)] * 2
        assert not queue.worker_is_alive()


def test_without_exclusive_a_held_lease_does_not_refuse_a_drain(queue, open_queue):
    queue.enqueue("x")
    with open_queue() as other:
        assert other.acquire_worker_lease()
        assert queue.drain(nothing, exclusive=False) == DrainReport(done=1)
        assert other.refresh_worker_lease()


def test_a_drain_that_cannot_bring_failed_items_back_leaves_no_lease_behind(address):
    class Broken(Queue):
        def retry_failed(self, *arguments, **options):
            raise QueueBusyError("somebody else writes")

    with Broken(address) as queue:
        queue.enqueue("x")
        with pytest.raises(QueueBusyError):
            queue.drain(nothing, retry_failed=True)
        assert not queue.worker_is_alive()


def test_a_report_shows_what_is_not_zero():
    assert repr(DrainReport()) == "DrainReport()"
    report = DrainReport(done=2, lost=1, stopped=True)
    assert repr(report) == "DrainReport(done=2, lost=1, stopped=True)"
    assert eval(repr(report)) == report
