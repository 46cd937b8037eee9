"""Progress beside an open transaction of the handler, and writes that the file refuses."""

import contextlib
import sqlite3

import pytest
from membox_queue import DrainReport, Queue, QueueError


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def shown(queue, qid=1):
    item = queue.get(qid)
    return item.progress, item.progress_note


def test_it_does_not_wait_for_a_transaction_of_the_handler_and_is_seen_after_it(path, until):
    with Queue(path, busy_timeout=600) as queue, contextlib.closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE notes (text)")
        queue.enqueue("x")

        def handler(item):
            own.execute("INSERT INTO notes VALUES ('mine')")
            assert item.set_progress(0.1, "in my transaction")
            assert item.set_progress(1.0, "still in it")
            assert shown(queue) == (None, None)
            own.commit()
            until(lambda: shown(queue) == (1.0, "still in it"))

        assert queue.drain(handler) == DrainReport(done=1)


def test_what_was_said_is_not_lost_with_a_transaction_that_fails(queue, item, path, sql):
    sql(path, "CREATE TRIGGER stop BEFORE UPDATE OF status ON ingest_queue BEGIN SELECT RAISE(ABORT, 'stop'); END")
    item.set_progress(0.1)
    item.set_progress(0.2, "too soon to be written at once")
    with pytest.raises(QueueError, match="stop"):
        queue.mark_done(item)
    sql(path, "DROP TRIGGER stop")
    assert queue.mark_failed(item, "no")
    assert shown(queue) == (0.2, "too soon to be written at once")


def test_progress_that_cannot_be_written_costs_neither_the_lease_nor_the_result(queue, item, path, sql):
    sql(path, "CREATE TRIGGER stop BEFORE INSERT ON membox_queue_progress BEGIN SELECT RAISE(ABORT, 'stop'); END")
    with pytest.raises(QueueError, match="stop"):
        item.set_progress(0.1)
    assert item.set_progress(0.2)
    assert queue.mark_done(item, "all the same")
    assert (queue.get(1).result, *shown(queue)) == ("all the same", None, None)
