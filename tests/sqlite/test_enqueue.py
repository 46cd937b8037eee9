"""The row that an enqueue writes, and ids that are used up."""

import re

import pytest
from membox_queue import NewItem, Queue, StorageError


def test_another_process_sees_the_item_as_soon_as_enqueue_returns(queue, path, sql):
    queue.enqueue("x", project="p")
    [[content, project, status, enqueued_at]] = sql(
        path, "SELECT content, project, status, enqueued_at FROM ingest_queue"
    )
    assert (content, project, status) == ("x", "p", "pending")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", enqueued_at)


def test_ids_that_are_used_up_are_not_a_full_disk(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (id, content) VALUES (9223372036854775807, 'last')")
    for enqueue in (queue.enqueue, lambda content: queue.enqueue_many([content])):
        with pytest.raises(StorageError, match=r"ids are used up.*9223372036854775807.*sqlite_sequence") as raised:
            enqueue("x")
        assert type(raised.value) is StorageError
    with pytest.raises(StorageError, match="ids are used up"):
        queue.replay(9223372036854775807)


def test_what_the_error_about_used_up_ids_advises_helps(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (id, content) VALUES (9223372036854775807, 'last')")
    queue.delete(9223372036854775807)
    sql(path, "UPDATE sqlite_sequence SET seq = 5 WHERE name = 'ingest_queue'")
    assert queue.enqueue("x") == 6


def test_a_queue_of_another_database_is_refused(queue):
    with Queue(":memory:", "elsewhere") as elsewhere:
        with pytest.raises(ValueError, match=r"^items\[1\]: the queue 'elsewhere' is in memory, not in "):
            queue.enqueue_many(["a", NewItem("b", queue=elsewhere)])
        assert elsewhere.enqueue_many([NewItem("b", queue=elsewhere), NewItem("c", queue="beside")]) == [1, 2]
    assert queue.pending() == 0
