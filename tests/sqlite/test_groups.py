"""Groups of rows that plain SQL wrote, replaced or moved."""

import pytest
from membox_queue import NewItem, Queue


def take(queue, **options):
    item = queue.claim(**options)
    return None if item is None else item.content


def test_rows_written_by_plain_sql_keep_the_rule(path, sql):
    with Queue(path) as queue:
        queue.enqueue("one", group="a")
    sql(path, "INSERT INTO ingest_queue (content, group_key) VALUES ('two', 'a'), ('three', 'a')")
    with Queue(path) as queue:
        held = queue.claim()
        assert (held.content, queue.claim()) == ("one", None)
    sql(path, "UPDATE ingest_queue SET status = 'pending', started_at = NULL WHERE status = 'processing'")
    with Queue(path) as queue:
        assert not queue.mark_done(held)
        assert (take(queue), queue.claim()) == ("one", None)
    sql(path, "UPDATE ingest_queue SET group_key = NULL WHERE id = 3")
    with Queue(path) as queue:
        assert (take(queue), queue.claim()) == ("three", None)


REPLACEMENTS = {
    "insert, by a row without a group": "INSERT OR REPLACE INTO ingest_queue (id, content) VALUES (1, 'other')",
    "insert, by a row of another queue": "REPLACE INTO ingest_queue (id, content, queue) VALUES (1, 'other', 'mail')",
    "insert, by key": "INSERT OR REPLACE INTO ingest_queue (content, dedup_key) VALUES ('other', 'k')",
    "update, by id": "UPDATE OR REPLACE ingest_queue SET id = 1 WHERE id = 3",
    "update, by key": "UPDATE OR REPLACE ingest_queue SET dedup_key = 'k' WHERE id = 3",
}


@pytest.mark.parametrize("statement", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_a_replaced_running_head_lets_the_next_one_pass_and_is_counted_no_more(queue, path, sql, statement):
    queue.enqueue_many([NewItem("one", group="a", key="k"), NewItem("two", group="a"), NewItem("last", priority=-1)])
    held = queue.claim()
    sql(path, statement)
    assert (held.lost, queue.counts()["processing"]) == (True, 0)
    assert queue.group_counts() == {"a": {"pending": 1, "processing": 0}}
    assert "two" in [item.content for item in queue.claim_many(2)]
    assert queue.history(1) == []


def test_what_gives_way_to_an_item_that_plain_sql_brings_back_is_counted_no_more(queue, path, sql):
    queue.enqueue("one", group="a", key="k")
    queue.mark_failed(queue.claim(), "no")
    queue.enqueue("two", group="b", key="k")
    sql(path, "UPDATE OR REPLACE ingest_queue SET status = 'pending' WHERE id = 1")
    assert queue.counts()["pending"] == 1
    assert queue.group_counts() == {"a": {"pending": 1, "processing": 0}}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR IGNORE INTO ingest_queue (id, content) VALUES (1, 'other')",
        "INSERT OR IGNORE INTO ingest_queue (content, dedup_key) VALUES ('other', 'k')",
        "INSERT INTO ingest_queue (id, content) VALUES (1, 'other') ON CONFLICT DO NOTHING",
        "INSERT INTO ingest_queue (id, content) VALUES (1, 'x') ON CONFLICT DO UPDATE SET project = excluded.content",
        "UPDATE OR IGNORE ingest_queue SET id = 1 WHERE id = 2",
    ],
)
def test_a_head_that_nothing_replaced_stays_whatever_comes_after(queue, path, sql, statement):
    queue.enqueue_many([NewItem("one", group="a", key="k"), NewItem("two", group="a")])
    held = queue.claim()
    sql(path, statement)
    queue.enqueue("free", priority=9)
    assert queue.group_counts() == {"a": {"pending": 1, "processing": 1}}
    assert (queue.counts()["pending"], queue.counts()["processing"]) == (2, 1)
    assert (take(queue), queue.claim()) == ("free", None)
    assert queue.mark_done(held)
    assert take(queue) == "two"


def test_a_copy_of_a_waiting_row_does_not_wait_for_a_group_that_it_is_not_in(queue, path, sql):
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    queue.claim()
    sql(path, "INSERT INTO ingest_queue (content, behind) SELECT 'copy', behind FROM ingest_queue WHERE id = 2")
    assert take(queue) == "copy"


def test_a_row_that_gets_another_id_takes_the_place_of_that_id(queue, path, sql):
    queue.enqueue_many([NewItem("one", group="a"), NewItem("two", group="a")])
    sql(path, "UPDATE ingest_queue SET id = 9 WHERE id = 1")
    assert take(queue) == "two"
    assert queue.claim() is None


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("group", ["x'7465616d'", "CAST(x'ff' AS TEXT)"])
def test_a_group_whose_name_is_no_text_stops_nobody(path, sql, limit, group):
    with Queue(path, group_limit=limit) as queue:
        sql(path, f"INSERT INTO ingest_queue (content, group_key) VALUES ('one', {group}), ('two', {group})")
        queue.enqueue("free")
        first = queue.claim()
        assert first.content == "one"
        assert queue.release(first)
        batch = queue.claim_group()
        assert [item.content for item in batch] == ["one", "two"]
        assert queue.mark_failed(batch[0], "no", retry_in=0)
        assert batch[1].lost
        handled = []
        queue.drain(handled.extend, batch="group")
        assert [item.content for item in handled] == ["one", "two", "free"]
