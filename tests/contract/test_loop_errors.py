"""What a loop tells and logs of errors."""

import logging

import pytest
from loops_in_threads import failing
from membox_queue import (
    DrainReport,
    StaleClaimError,
)


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
    assert {(name, level) for name, level, _ in caplog.record_tuples} == {("membox_queue", logging.INFO)}
    assert "LookupError" in caplog.text
