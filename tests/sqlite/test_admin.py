"""Repairs of many rows, and counts beside plain SQL."""

import pytest
from membox_queue import Queue, QueueError


@pytest.mark.parametrize("status", ["pending", "done", "blocked"])
def test_many_rows_are_removed_in_steps(queue, path, sql, status):
    queue.enqueue_many(str(number) for number in range(2600))
    sql(path, "UPDATE ingest_queue SET status = ? WHERE id > 100", status)
    sql(path, "UPDATE ingest_queue SET status = 'cancelled' WHERE id <= 100")
    assert queue.purge(status) == 2500
    assert queue.counts()[status] == 0
    assert queue.counts()["cancelled"] == 100


@pytest.mark.parametrize("remove", [lambda queue: queue.purge("done"), lambda queue: queue.prune(0)])
def test_a_step_that_fails_says_what_the_steps_before_have_removed(queue, path, sql, remove):
    queue.enqueue_many(range(1500))
    sql(path, "UPDATE ingest_queue SET status = 'done', finished_at = '2020-01-01 00:00:00.000'")
    sql(path, "CREATE TRIGGER stop BEFORE DELETE ON ingest_queue WHEN OLD.id = 1200"
              " BEGIN SELECT RAISE(ABORT, 'stop'); END")  # fmt: skip
    with pytest.raises(QueueError, match=r"1000 items were already processed.*In the last portion: .*stop"):
        remove(queue)
    assert queue.counts()["done"] == 500
    sql(path, "DROP TRIGGER stop")
    sql(path, "CREATE TRIGGER stop BEFORE DELETE ON ingest_queue BEGIN SELECT RAISE(ABORT, 'stop'); END")
    with pytest.raises(QueueError, match="stop") as first:
        remove(queue)
    assert "before" not in str(first.value)


def test_counts_follow_every_change_also_by_plain_sql(path, sql):
    with Queue(path) as queue:
        queue.enqueue_many(["a", "b", "c", "d"])
        queue.mark_done(queue.claim())
        queue.cancel(2)
    sql(path, "INSERT INTO ingest_queue (content) VALUES ('e')")
    sql(path, "UPDATE ingest_queue SET status = 'failed' WHERE id = 3")
    sql(path, "UPDATE ingest_queue SET queue = 'mail' WHERE id = 4")
    sql(path, "DELETE FROM ingest_queue WHERE id = 1")
    with Queue(path) as queue, Queue(path, "mail") as mail:
        expected = {"pending": 1, "processing": 0, "done": 0, "failed": 1, "blocked": 0, "cancelled": 1}
        assert queue.counts() == expected
        assert mail.counts()["pending"] == 1
