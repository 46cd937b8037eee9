"""Very many failed items that come back in steps."""

import pytest
from membox_queue import QueueError

STOP_AT_1200 = """
CREATE TRIGGER stop AFTER UPDATE OF status ON ingest_queue WHEN NEW.id = 1200
BEGIN
    SELECT RAISE(ABORT, 'stop');
END
"""


def test_very_many_come_back_in_steps_and_others_write_in_between(queue, path, sql):
    queue.enqueue_many(range(1500))
    sql(path, "UPDATE ingest_queue SET status = 'failed', retries = 1")
    sql(path, STOP_AT_1200)
    with pytest.raises(QueueError, match=r"1000 items were already processed.*In the last portion: .*stop"):
        queue.retry_failed()
    assert queue.counts()["pending"] == 1000
    sql(path, "DROP TRIGGER stop")
    assert queue.retry_failed() == 500
