"""Counts of rows whose status plain SQL changed."""

from membox_queue import Queue


def test_rows_are_counted_by_the_status_that_plain_sql_gave_them(queue, path, sql):
    queue.enqueue_many(range(12))
    queue.mark_done_many(queue.claim_many(4))
    for item in queue.claim_many(3):
        queue.mark_failed(item, "boom")
    queue.claim_many(2)
    queue.enqueue("later", delay=60)
    sql(path, "UPDATE ingest_queue SET status = 'cancelled' WHERE id = 10")
    sql(path, "UPDATE ingest_queue SET status = 'blocked' WHERE id = 11")
    with Queue(path, "mail") as mail:
        mail.enqueue("m")
    assert queue.counts() == {"pending": 2, "processing": 2, "done": 4, "failed": 3, "blocked": 1, "cancelled": 1}
