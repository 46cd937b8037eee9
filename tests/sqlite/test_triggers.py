"""Triggers of the application on the queue's table: what one of them ignored is an error, never a wrong answer."""

import re
import sqlite3
from contextlib import closing

import apsw
import pytest
import sqlalchemy
from membox_queue import NewItem, Queue, QueueError, StorageError

IGNORED = r"trigger of the application.*RAISE\(IGNORE\).*no_spam"


@pytest.fixture
def spam_is_ignored(queue, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER no_spam BEFORE INSERT ON ingest_queue WHEN new.content LIKE 'spam%' "
            "BEGIN SELECT RAISE(IGNORE); END"
        )


@pytest.fixture
def changes_are_ignored(queue, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER no_spam BEFORE UPDATE ON ingest_queue WHEN old.content LIKE 'spam%' "
            "BEGIN SELECT RAISE(IGNORE); END"
        )


@pytest.mark.usefixtures("spam_is_ignored")
@pytest.mark.parametrize(
    "enqueue",
    [
        lambda queue: queue.enqueue("spam"),
        lambda queue: queue.enqueue("spam", key="k"),
        lambda queue: queue.enqueue_many(["more ham", "spam", "even more ham"]),
    ],
)
def test_an_enqueue_that_a_trigger_ignored_is_an_error(queue, enqueue):
    assert queue.enqueue("ham") == 1
    with pytest.raises(StorageError, match=IGNORED):
        enqueue(queue)
    assert [item.content for item in queue.items()] == ["ham"]
    assert queue.enqueue("ham") == 2


@pytest.mark.usefixtures("spam_is_ignored")
def test_items_that_pass_the_trigger_have_their_own_ids(queue):
    assert queue.enqueue_many(["a", NewItem("b", group="g"), NewItem("c", key="k")]) == [1, 2, 3]


@pytest.mark.parametrize("library", ["sqlite3", "apsw", "sqlalchemy"])
@pytest.mark.usefixtures("spam_is_ignored")
def test_an_enqueue_in_the_callers_transaction_that_a_trigger_ignored_is_an_error(queue, path, library):
    queue.enqueue("ham")
    if library == "sqlalchemy":
        engine = sqlalchemy.create_engine(f"sqlite:///{path}")
        connection = engine.connect()
    else:
        connection = {"sqlite3": sqlite3.connect, "apsw": apsw.Connection}[library](str(path))
    with closing(connection):
        if library == "apsw":
            connection.execute("BEGIN")
        with pytest.raises(StorageError, match=r"trigger of the application.*RAISE\(IGNORE\)"):
            queue.enqueue("spam", connection=connection)
        assert queue.enqueue("more ham", connection=connection) == 2


@pytest.mark.usefixtures("changes_are_ignored")
def test_a_replacement_that_a_trigger_ignored_is_an_error(queue, path):
    queue.enqueue("spam", key="k")
    with pytest.raises(StorageError, match=IGNORED):
        queue.enqueue("ham", key="k", on_duplicate="replace")
    with closing(sqlite3.connect(path)) as own, pytest.raises(StorageError, match="trigger of the application"):
        queue.enqueue("ham", key="k", on_duplicate="replace", connection=own)
    assert queue.get(1).content == "spam"


def test_a_replay_that_a_trigger_ignored_is_an_error(queue, request):
    queue.enqueue("spam")
    request.getfixturevalue("spam_is_ignored")
    with pytest.raises(StorageError, match=IGNORED):
        queue.replay(1)
    assert queue.replay(2) is None, "there is no such item"


@pytest.mark.usefixtures("spam_is_ignored")
def test_a_tick_that_a_trigger_ignored_is_told_and_keeps_no_claim_from_its_item(queue, clock, caplog):
    queue.schedule("hourly", "spam", every=3600)
    ham = queue.enqueue("ham")
    clock.advance(3601)
    assert queue.claim().id == ham
    assert re.search(rf"the schedule .hourly. did not tick: .*{IGNORED}", caplog.text)
    assert queue.schedules()[0].last_at is None
    assert queue.claim() is None
    assert caplog.text.count("did not tick") == 1, "the next tick is an hour away"


def test_an_end_that_a_trigger_ignored_is_an_error_and_not_a_lost_claim(queue, sql, path):
    queue.enqueue("spam")
    sql(
        path,
        "CREATE TRIGGER never_done BEFORE UPDATE OF status ON ingest_queue WHEN NEW.status = 'done' "
        "BEGIN SELECT RAISE(IGNORE); END",
    )
    item = queue.claim()
    with pytest.raises(StorageError, match=r"the end of item 1 .*trigger of the application.*never_done"):
        queue.mark_done(item)
    assert not item.lost
    sql(path, "DROP TRIGGER never_done")
    assert queue.mark_done(item)


@pytest.mark.usefixtures("changes_are_ignored")
def test_a_claim_that_a_trigger_ignored_names_the_trigger(queue):
    queue.enqueue("spam")
    with pytest.raises(StorageError, match=IGNORED) as raised:
        queue.claim()
    assert type(raised.value) is StorageError


def test_an_end_that_is_recorded_is_reported_though_the_next_claim_fails(path, sql, clock):
    told = []
    with Queue(path) as queue:
        queue.enqueue("one")
        queue.schedule("tick", "tick", every=60)

        def handler(item):
            if item.content == "one":
                clock.advance(61)
                sql(path, "CREATE TRIGGER app BEFORE INSERT ON ingest_queue BEGIN SELECT RAISE(ABORT, 'no'); END")

        with pytest.raises(QueueError, match="no"):
            queue.drain(handler, progress=lambda event: told.append((event.kind, event.item and event.item.id)))
        assert ("done", 1) in told
        assert queue.get(1).status == "done"


def test_an_item_that_a_trigger_keeps_from_being_removed_is_done(path, sql):
    with Queue(path, keep_for=0) as queue:
        sql(path, "CREATE TRIGGER keep BEFORE DELETE ON ingest_queue BEGIN SELECT RAISE(ABORT, 'never'); END")
        qid = queue.enqueue("x")
        assert queue.drain(lambda item: None).done == 1
        assert queue.get(qid).status == "done"
