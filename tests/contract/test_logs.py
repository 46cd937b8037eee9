"""The log of loops: when they start and stop, each claim and end, with fields for programs."""

import asyncio
import logging
import os

import pytest
from loops_in_threads import failing, nothing
from membox_queue import Worker
from membox_queue.loops import log


@pytest.fixture
def logged(caplog):
    """The records so far, by their event."""

    def logged(event):
        return [record for record in caplog.records if getattr(record, "event", None) == event]

    caplog.set_level(logging.DEBUG, logger="membox_queue")
    return logged


def test_a_loop_logs_its_start_and_its_stop(queue, logged):
    queue.enqueue_many(["a", "b"])
    queue.drain(nothing, concurrency=2)
    (started,), (stopped,) = logged("worker_started"), logged("worker_stopped")
    assert (started.levelno, stopped.levelno) == (logging.INFO, logging.INFO)
    assert (started.queues, started.handlers) == (["ingest"], ["loops_in_threads:nothing"])
    assert (started.kind, started.concurrency, started.pid) == ("drain", 2, os.getpid())
    assert started.file == str(queue.path)
    assert started.getMessage().startswith("worker started: drain of ingest in ")
    assert (stopped.queues, stopped.report["done"], stopped.report["failed"]) == (["ingest"], 2, 0)
    assert stopped.seconds >= 0
    assert ": 2 done (ingest, pid " in stopped.getMessage()


def test_a_worker_names_all_its_queues_and_handlers(address, open_queue, logged):
    open_queue("mail").enqueue("x")
    Worker(address, {"ingest": nothing, "mail": failing}).drain()
    (started,) = logged("worker_started")
    assert started.queues == ["ingest", "mail"]
    assert started.handlers == ["loops_in_threads:nothing", "loops_in_threads:failing"]
    assert logged("worker_stopped")[0].report["failed"] == 1


def test_each_claim_and_each_end_is_logged_with_its_item(queue, logged):
    queue.enqueue_many(["good", "bad"])
    queue.drain(lambda item: failing(item) if item.content == "bad" else None)
    claimed, ended = logged("claimed"), logged("ended")
    assert {record.levelno for record in claimed + ended} == {logging.DEBUG}
    assert [(record.queue, record.item_id, record.attempt) for record in claimed] == [
        ("ingest", 1, 1),
        ("ingest", 2, 1),
    ]
    assert [(record.item_id, record.ending) for record in ended] == [(1, "done"), (2, "failed")]
    assert all(record.seconds >= 0 and record.attempt == 1 for record in ended)
    (raised,) = logged("raised")
    assert (raised.queue, raised.item_id, raised.error, raised.levelno) == ("ingest", 2, "LookupError", logging.WARNING)


def test_loops_of_asyncio_log_the_same(aqueue, logged):
    async def main():
        async with aqueue:
            await aqueue.enqueue("x")
            await aqueue.drain(lambda item: None)

    asyncio.run(main())
    events = ["worker_started", "claimed", "ended", "worker_stopped"]
    assert [len(logged(event)) for event in events] == [1, 1, 1, 1]


def test_every_record_of_a_loop_has_an_event(queue, caplog, membox_faults):
    caplog.set_level(logging.DEBUG, logger="membox_queue")
    membox_faults.busy("claim", times=1)
    queue.enqueue_many(["bad", {"result": "odd"}, "progress"])

    def handler(item):
        return failing(item) if item.content == "bad" else object()

    def broken(*_):
        raise KeyError("broken")

    queue.drain(handler, on_error=broken, progress=broken)
    seen = {getattr(record, "event", record.getMessage()) for record in caplog.records}
    assert seen == {
        *("worker_started", "worker_stopped", "claimed", "ended", "raised"),
        *("store_busy", "result_not_stored", "on_error_raised", "progress_raised"),
    }


def test_nothing_is_made_of_an_item_when_the_level_is_off(queue, caplog, monkeypatch):
    monkeypatch.setattr(log, "fields", None)
    caplog.set_level(logging.WARNING, logger="membox_queue")
    queue.enqueue("x")
    assert queue.drain(nothing).done == 1
