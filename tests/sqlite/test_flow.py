"""Dependencies and deadlines in the file: plain SQL, the caller's own connection, moved items, many at once."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from membox_queue import NewItem, Queue

STATEMENTS = Path(__file__).parents[2] / "src" / "sqlite" / "sql"


def statuses(queue, *ids):
    return [queue.get(id).status for id in ids]


@pytest.mark.parametrize("if_failed", ["cancel", "run"])
def test_plain_sql_that_ends_a_dependency_is_noticed_by_the_next_claim(queue, path, sql, if_failed):
    a, b, c = queue.enqueue_many(["a", "b", "c"])
    ids = [queue.enqueue(f"after {id}", after=[id], if_failed=if_failed) for id in (a, b, c)]
    sql(path, "UPDATE ingest_queue SET status = 'done' WHERE id = ?", a)
    sql(path, "UPDATE ingest_queue SET status = 'failed' WHERE id = ?", b)
    sql(path, "DELETE FROM ingest_queue WHERE id = ?", c)
    first = queue.claim()
    if if_failed == "run":
        assert first.id == ids[0]
        assert statuses(queue, *ids) == ["processing", "pending", "pending"]
        assert queue.get(ids[2]).after == [None]
    else:
        assert statuses(queue, *ids) == ["processing", "cancelled", "cancelled"]
        assert queue.get(ids[2]).error == f"it waits for item {c}, which was removed"


def test_a_wait_does_not_hang_for_ever_on_what_plain_sql_has_ended(queue, path, sql, background):
    a = queue.enqueue("a")
    id = queue.enqueue("b", after=[a])
    wait = background(queue.wait, id, 30)
    sql(path, "DELETE FROM ingest_queue WHERE id = ?", a)
    assert wait.result(15).status == "cancelled"


def test_replace_by_plain_sql_counts_as_removed(queue, path, sql):
    a = queue.enqueue("a", key="k")
    id = queue.enqueue("b", after=[a])
    sql(path, "INSERT OR REPLACE INTO ingest_queue (content, dedup_key) VALUES ('new', 'k')")
    assert queue.claim().content == "new"
    assert queue.get(id).status == "cancelled"


def test_rows_with_a_deadline_of_another_program_expire(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (content, expires_at) VALUES ('a', 5)")
    assert queue.claim() is None
    assert queue.get(1).error == "it expired"


def test_an_item_that_has_moved_is_found_from_home_and_where_it_is(queue, open_queue, path, sql):
    other, third = open_queue("other"), open_queue("third")
    id = queue.enqueue("a")
    sql(path, "UPDATE ingest_queue SET home = 'ingest', queue = 'other' WHERE id = ?", id)
    assert queue.get(id).home == other.get(id).home == "ingest"
    assert third.get(id) is None
    assert [item.id for item in queue.items(home=True)] == [id]
    assert queue.items() == other.items(home=True) == []
    assert queue.coverage_note() == other.coverage_note() == "1 ingest pending — results may be incomplete"
    assert third.coverage_note() is None
    assert queue.cancel(id)
    assert queue.retry(id)
    other.mark_failed(other.claim(), "boom")
    assert [attempt.ending for attempt in queue.history(id)] == ["failed"]
    assert queue.wait(id, 5).error == "boom"
    assert queue.answer(id, 1)
    assert queue.delete(id)


@pytest.mark.parametrize("commits", [True, False])
def test_dependencies_in_the_callers_transaction_are_written_with_it(queue, path, commits):
    a = queue.enqueue("a")
    failed = queue.enqueue("b")
    queue.cancel(failed)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        waiting = queue.enqueue("c", after=[a, a], connection=connection)
        cancelled = queue.enqueue("d", after=[failed], connection=connection)
        runs = queue.enqueue("e", after=[failed], if_failed="run", connection=connection)
        many = queue.enqueue_many([NewItem("f", after=[waiting], expires=60)], connection=connection)
        with pytest.raises(ValueError, match="there is no item 999"):
            queue.enqueue("g", after=[999], connection=connection)
        family = queue.enqueue("h", after=[NewItem("x", queue="other"), a], priority=-1, connection=connection)
        connection.commit() if commits else connection.rollback()
    ids = (waiting, cancelled, runs, *many)
    if not commits:
        assert [queue.get(id) for id in (*ids, family)] == [None] * 5
        return
    assert statuses(queue, *ids) == ["blocked", "cancelled", "pending", "blocked"]
    assert queue.get(cancelled).error == f"it waits for item {failed}, which was cancelled"
    assert queue.get(many[0]).expires_at is not None
    child, needed = queue.get(family).after
    assert (child.queue, child.parent, child.priority, needed.id) == ("other", family, -1, a)
    queue.mark_done(queue.claim())
    assert queue.get(waiting).status == "pending"


@pytest.mark.parametrize("commits", [True, False])
def test_an_answer_in_the_callers_transaction_is_given_with_it(queue, path, commits):
    id = queue.enqueue("approve?", key="k")
    waiting = queue.enqueue("go on", after=[id])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE decisions (yes)")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO decisions VALUES (1)")
        assert queue.answer(key="k", result={"yes": True}, connection=connection)
        assert not queue.answer(id, {"yes": False}, connection=connection)
        assert not queue.answer(999, connection=connection)
        assert not queue.answer(key="other", connection=connection)
        assert queue.answer(key="other", error="declined", key_ttl=60, connection=connection)
        assert queue.answer(key="kept", result=1, key_ttl=60, connection=connection)
        assert not queue.answer(key="kept", result=2, key_ttl=60, connection=connection)
        assert statuses(queue, id, waiting) == ["pending", "blocked"]
        connection.commit() if commits else connection.rollback()
    assert statuses(queue, id, waiting) == (["done", "pending"] if commits else ["pending", "blocked"])
    kept = queue.get(key="kept")
    assert (kept.result if commits else kept) == (1 if commits else None)


def test_an_end_in_a_transaction_that_is_rolled_back_frees_nobody(queue, path):
    a = queue.enqueue("a")
    id = queue.enqueue("b", after=[a])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE ingest_queue SET status = 'done' WHERE id = ?", (a,))
        connection.execute("INSERT INTO membox_queue_look VALUES (?, 10, 'now')", (a,))
        assert connection.execute("SELECT status FROM ingest_queue WHERE id = ?", (id,)).fetchone() == ("pending",)
        connection.execute("ROLLBACK")
    assert statuses(queue, a, id) == ["pending", "blocked"]


def test_what_is_enqueued_after_an_item_that_is_ending_is_never_stranded(path):
    with Queue(path, durability="normal") as first, Queue(path, durability="normal") as second:
        waiting = []

        def enqueue():
            for _ in range(300):
                newest = second.items("pending", limit=1) or second.items("processing", limit=1)
                if newest:
                    waiting.append(second.enqueue("after", priority=-1, after=[newest[0]], if_failed="run"))

        thread = threading.Thread(target=enqueue)
        first.enqueue_many(["gate"] * 300)
        thread.start()
        while thread.is_alive() or first.counts()["pending"] or first.counts()["processing"]:
            if (item := first.claim()) is not None:
                first.mark_done(item)
        thread.join()
        first.drain(lambda item: None)
        assert first.counts()["blocked"] == 0
        assert {item.status for item in map(first.get, waiting)} == {"done"}


def test_a_gate_for_many_is_worked_off_in_bounded_steps(queue, path, sql):
    gate = queue.enqueue("gate", priority=1)
    queue.enqueue_many([NewItem(n, after=[gate]) for n in range(2500)])
    queue.mark_done(queue.claim())
    assert 1000 <= queue.counts()["pending"] < 2500, "the rest is left to claims"
    other = queue.enqueue("other")
    queue.mark_done_many(queue.claim_many(3))
    while queue.counts()["blocked"]:
        queue.claim()
    assert sql(path, "SELECT count(*) FROM membox_queue_awaited") == [[0]]
    assert queue.get(other).status == "pending"


def test_the_edges_of_a_removed_item_are_removed(queue, path, sql):
    a = queue.enqueue("a")
    queue.enqueue("b", after=[a])
    queue.purge("blocked")
    assert sql(path, "SELECT count(*) FROM membox_queue_after") == [[0]]


def test_an_item_that_waits_behind_itself_is_refused(queue, path, sql):
    a = queue.enqueue("a")
    b = queue.enqueue("b", after=[a])
    c = queue.enqueue("c", after=[b])
    chain = (STATEMENTS / "after_circle.sql").read_text()
    chain = "\n".join(line for line in chain.splitlines() if not line.startswith("--"))
    assert sql(path, chain, a, c) == [[1]]
    assert sql(path, chain, a, a) == [[1]]
    assert sql(path, chain, c, a) == []
