"""Waiting for items that plain SQL ends or removes, and beside an open transaction."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def waiting(queue):
    """Start a wait in a thread; its future, once it is under way."""
    with ThreadPoolExecutor(4) as pool:

        def waiting(qid, **options):
            began = threading.Event()

            def wait():
                began.set()
                return queue.wait(qid, **options)

            future = pool.submit(wait)
            assert began.wait(30)
            assert not future.done()
            return future

        yield waiting
        queue.close()


def test_an_item_that_plain_sql_ends_ends_the_wait(queue, waiting, path, sql):
    future = waiting(queue.enqueue("x"))
    sql(path, "UPDATE ingest_queue SET status = 'done'")
    assert future.result(30).status == "done"


@pytest.mark.parametrize("by_sql", [False, True])
def test_a_wait_for_an_item_that_is_removed_meanwhile_returns_none(queue, waiting, path, sql, by_sql):
    qid = queue.enqueue("x")
    future = waiting(qid)
    if by_sql:
        sql(path, "DELETE FROM ingest_queue")
    else:
        queue.delete(qid)
    assert future.result(30) is None


def test_a_wait_beside_an_open_transaction_does_not_wait_for_it(queue, clock, writer):
    qid = queue.enqueue("x", max_retries=1)
    queue.claim()
    clock.advance(61)
    close_if_idle = writer()
    with pytest.raises(TimeoutError):
        queue.wait(qid, timeout=0)
    close_if_idle()
    assert queue.wait(qid, timeout=30).status == "failed"
