"""Retrying an item that plain SQL cancelled."""


def test_an_item_that_plain_sql_cancelled_comes_back(queue, path, sql):
    qid = queue.enqueue("x")
    sql(path, "UPDATE ingest_queue SET status = 'cancelled'")
    assert queue.retry(qid) is True
    assert queue.claim().id == qid
