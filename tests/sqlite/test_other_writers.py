"""Rows and values that other programs wrote: none of them stops the queue."""

import sqlite3

import pytest
from membox_queue import (
    DrainReport,
    Queue,
    Rate,
)

from sqlite.test_membox_file import MEMBOX


@pytest.fixture
def insert(queue, path, sql):
    """Put a row in from another process, with columns as given in SQL; its id."""

    def insert(**columns):
        values = {"content": "'x'"} | columns
        statement = f"INSERT INTO ingest_queue ({', '.join(values)}) VALUES ({', '.join(values.values())}) RETURNING id"
        return sql(path, statement)[0][0]

    return insert


def test_a_plain_insert_of_content_alone_is_an_enqueue(queue, insert):
    qid = insert(content="'from the shell'")
    item = queue.claim()
    assert (item.id, item.content, item.queue, item.attempt, item.retries) == (qid, "from the shell", "ingest", 1, 0)
    assert abs((item.started_at - item.enqueued_at).total_seconds()) < 3600
    assert queue.mark_done(item)


UNREADABLE = {
    "bad JSON": ({"content": "'{oops'", "content_type": "'json'"}, "{oops", "not valid JSON"),
    "NaN": ({"content": "'NaN'", "content_type": "'json'"}, "NaN", "not valid JSON"),
    "bottomless JSON": ({"content": f"'{'[' * 500}'", "content_type": "'json'"}, "[" * 500, "not valid JSON"),
    "half a character": ({"content": r"""'"\ud800"'""", "content_type": "'json'"}, r'"\ud800"', "not valid JSON"),
    "bad base64": ({"content": "'a!b'", "content_type": "'base64'"}, "a!b", "not valid base64"),
    "bad UTF-8": ({"content": "CAST(x'61ff62' AS TEXT)"}, "a\ufffdb", "not valid UTF-8"),
    "another type": ({"content_type": "'pickle'"}, "x", "'pickle' is not text, json or base64"),
    "bad headers": ({"headers": "'[1]'"}, "x", "headers are not a JSON object"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_row_that_cannot_be_read_ends_as_failed_with_its_text_kept(queue, insert, case):
    columns, raw, error = UNREADABLE[case]
    bad = insert(**columns)
    good = queue.enqueue("good")
    assert queue.claim().id == good
    item = queue.get(bad)
    assert (item.status, item.content) == ("failed", raw)
    assert error in item.error
    assert queue.retry_failed() == 0
    assert [failure.id for failure in queue.failures()] == [bad]


def test_rows_that_cannot_be_read_do_not_stop_the_others(queue, path, sql):
    sql(
        path,
        "INSERT INTO ingest_queue (content, content_type) WITH RECURSIVE n (i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT iif(i % 10, '{', '[]'), 'json' FROM n",
    )
    assert [item.id for item in queue.claim_many(4)] == [10, 20, 30, 40]
    assert queue.drain(lambda item: None) == DrainReport(done=6)
    assert queue.counts()["failed"] == 90


@pytest.mark.parametrize(
    ("columns", "content"),
    [
        ({"content": "x'00ff'"}, b"\x00\xff"),
        ({"content": "5"}, "5"),
        ({"content": "'[1]'", "content_type": "'json'", "headers": "'{}'"}, [1]),
        ({"priority": "'high'"}, "x"),
        ({"priority": "1.5"}, "x"),
        ({"retries": "'many'"}, "x"),
        ({"max_retries": "'few'"}, "x"),
        ({"attempt": "'first'"}, "x"),
        ({"attempt": "1.5"}, "x"),
        ({"run_at": "-1"}, "x"),
        ({"run_at": "1.5"}, "x"),
        ({"enqueued_at": "'yesterday'"}, "x"),
        ({"project": "x'ff'", "source_path": "5", "doc_date": "1.5"}, "x"),
        ({"worker": "x'ff'", "claim_token": "'t'", "lease_until": "'soon'"}, "x"),
        ({"error": "5", "result": "'{'"}, "x"),
    ],
)
def test_columns_of_unexpected_types_do_not_stop_an_item(queue, insert, columns, content):
    qid = insert(**columns)
    item = queue.claim()
    assert (item.id, item.content) == (qid, content)
    assert queue.mark_done(item)


@pytest.mark.parametrize("when", ["'2020-01-01'", "x'00'"])
def test_a_due_time_that_is_no_number_does_not_hold_an_item_for_ever(queue, insert, when):
    qid = insert(run_at=when)
    queue.claim()
    assert queue.get(qid).status in ("processing", "failed")


@pytest.mark.parametrize(
    "columns",
    [
        {"lease_until": "1", "retries": "'many'", "max_retries": "'few'", "worker": "x'ff'"},
        {"lease_until": "1", "attempt": "'first'"},
        {"lease_until": "1", "attempt": "1.5"},
        {"lease_until": "1", "claim_token": "'token'"},
        {"lease_until": "'soon'"},
    ],
)
def test_a_claim_of_unexpected_types_comes_back(queue, insert, columns):
    qid = insert(status="'processing'", **columns)
    assert queue.claim().id == qid


def test_many_claims_of_unexpected_types_do_not_keep_a_claim_busy_for_ever(queue, path, sql, start):
    queue.enqueue_many(["x"] * 20)
    sql(path, "UPDATE ingest_queue SET status = 'processing', lease_until = 1, lease_ms = 1, claim_token = 'token'")
    worker = start("import sys, membox_queue; membox_queue.Queue(sys.argv[1]).claim()", path)
    assert worker.wait(5) == 0


@pytest.mark.parametrize("holder", ["1.5", "'somebody'", "x'00'", "9e99"])
def test_an_entry_among_the_holders_that_is_no_number_holds_up_no_claim(queue, path, sql, holder):
    queue.enqueue("x")
    sql(path, f"INSERT INTO membox_queue_holders VALUES ('ingest', {holder})")
    assert queue.claim().content == "x"
    assert queue.claim() is None
    assert queue.check()["stuck"] == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ingest_queue (content, status) VALUES ('y', 'Pending')",
        "INSERT OR IGNORE INTO ingest_queue (content, status) VALUES ('y', 'waiting')",
        "INSERT INTO ingest_queue (content, status) VALUES ('y', x'70')",
        "INSERT INTO ingest_queue (content, status) VALUES ('y', '')",
        "UPDATE ingest_queue SET status = 'queued'",
        "UPDATE OR REPLACE ingest_queue SET status = 'DONE'",
    ],
)
@pytest.mark.parametrize("made", ["by us", "by membox"])
def test_a_status_that_is_none_is_refused_by_the_table(path, statement, made):
    connection = sqlite3.connect(path, isolation_level=None)
    if made == "by membox":
        connection.executescript(MEMBOX)
    with Queue(path) as queue:
        queue.enqueue("x")
        with pytest.raises(sqlite3.IntegrityError, match="pending, processing, done, failed, blocked or cancelled"):
            connection.execute(statement)
        connection.close()
        assert [(item.content, item.status) for item in queue.items()] == [("x", "pending")]
        assert queue.counts()["pending"] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE membox_queue_counts SET active = 1.5",
        "UPDATE membox_queue_counts SET done = 'many'",
        "UPDATE membox_queue_groups SET pending = 'many'",
        "INSERT INTO membox_queue_holds VALUES ('ingest', x'00', 1.5)",
        "INSERT INTO membox_queue_starts VALUES ('ingest', '', 1.5, 'soon')",
        "INSERT INTO membox_queue_starts VALUES ('ingest', '', 1, 'soon')",
    ],
)
def test_values_of_another_type_in_our_own_tables_stop_no_call(path, sql, statement):
    with Queue(path, rate=Rate(100, per=60)) as queue:
        queue.enqueue("x", group="g")
        sql(path, statement)
        for look in (queue.counts, queue.group_counts, queue.stats, queue.check, queue.tend):
            look()
        assert queue.mark_done(queue.claim())
