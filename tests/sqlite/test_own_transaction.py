"""enqueue(connection=…): in the caller's own transaction, by the caller's own library, in the same process."""

import asyncio
import contextlib
import os
import sqlite3
import sys
from contextlib import closing

import pytest
from membox_queue import AsyncQueue, DuplicateItemError, Queue, QueueFullError

from sqlite.libraries import of_django


@pytest.fixture
def own(path, queue):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, text TEXT)")
    yield connection
    connection.close()


@pytest.fixture
def pool(path, queue):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pool = sqlalchemy.create_engine(f"sqlite:///{path}")
    yield pool
    pool.dispose()


def test_item_and_application_data_are_there_together_after_their_commit(queue, own):
    own.execute("INSERT INTO orders (text) VALUES ('one')")
    id = queue.enqueue({"order": 1}, connection=own, priority=3, headers={"h": 1}, project="p")
    assert queue.pending() == 0
    own.commit()
    item = queue.claim()
    assert (item.id, item.content, item.priority, item.headers, item.project) == (id, {"order": 1}, 3, {"h": 1}, "p")
    assert own.execute("SELECT count(*) FROM orders").fetchone() == (1,)


def test_a_rollback_leaves_nothing(queue, own):
    own.execute("INSERT INTO orders (text) VALUES ('one')")
    queue.enqueue("x", connection=own, group="g")
    own.rollback()
    assert queue.counts()["pending"] == 0
    assert queue.claim() is None
    assert queue.enqueue("y") == 1


def test_groups_delays_and_keys_work_the_same(queue, own, clock):
    queue.enqueue("one", connection=own, group="g")
    queue.enqueue("two", connection=own, group="g")
    queue.enqueue("later", connection=own, delay=60)
    keyed = queue.enqueue("keyed", connection=own, key="k")
    assert queue.enqueue("again", connection=own, key="k") == keyed
    assert queue.enqueue("new", connection=own, key="k", on_duplicate="replace") == keyed
    with pytest.raises(DuplicateItemError):
        queue.enqueue("no", connection=own, key="k", on_duplicate="raise")
    own.commit()
    assert [item.content for item in queue.claim_many(9)] == ["one", "new"]
    clock.advance(61)
    assert "later" in [item.content for item in queue.claim_many(9)]


def test_sqlalchemy_connections_and_sessions_are_taken(queue, pool):
    from sqlalchemy.orm import Session

    with pool.begin() as connection:
        first = queue.enqueue("connection", connection=connection)
    with Session(pool) as session, session.begin():
        second = queue.enqueue("session", connection=session)
    with Session(pool) as session:
        queue.enqueue("gone", connection=session)
    assert [item.id for item in queue.items()] == [first, second]


def test_apsw_is_taken(queue, path):
    apsw = pytest.importorskip("apsw")
    connection = apsw.Connection(str(path))
    with connection:
        id = queue.enqueue("x", connection=connection)
    connection.close()
    assert queue.claim().id == id


def as_dict(cursor, row):
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@pytest.mark.parametrize(
    ("setting", "value"), [("row_factory", as_dict), ("row_factory", sqlite3.Row), ("text_factory", bytes)]
)
def test_what_a_connection_makes_of_its_rows_does_not_matter(queue, own, setting, value):
    setattr(own, setting, value)
    id = queue.enqueue("old", connection=own, key="k")
    assert queue.enqueue("new", connection=own, key="k", on_duplicate="replace") == id
    own.commit()
    assert queue.claim().content == "new"


def test_what_apsw_makes_of_its_rows_does_not_matter(queue, path):
    apsw = pytest.importorskip("apsw")
    with closing(apsw.Connection(str(path))) as connection:
        connection.row_trace = lambda cursor, row: {"first": row[0]}
        with connection:
            id = queue.enqueue("x", connection=connection, key="k")
            assert queue.enqueue("y", connection=connection, key="k") == id


def test_a_key_that_is_enqueued_just_before_the_transaction_begins_comes_back(queue, own):
    def be_quicker(statement):
        if "BEGIN" in statement:
            own.set_trace_callback(None)
            queue.enqueue("quicker", key="k")

    own.set_trace_callback(be_quicker)
    assert queue.enqueue("slower", connection=own, key="k") == 1
    own.commit()
    assert [item.content for item in queue.items()] == ["quicker"]


def test_a_savepoint_that_is_rolled_back_takes_its_items_along(queue, pool):
    with pool.begin() as connection:
        queue.enqueue("stays", connection=connection)
        savepoint = connection.begin_nested()
        queue.enqueue("goes", connection=connection, group="g", key="k")
        savepoint.rollback()
    assert [item.content for item in queue.items()] == ["stays"]
    assert queue.counts()["pending"] == 1


def test_a_full_queue_refuses_and_still_finds_and_replaces_keys(path):
    with Queue(path, max_pending=2) as queue, closing(sqlite3.connect(path)) as own:
        queue.enqueue("one", connection=own)
        keyed = queue.enqueue("two", connection=own, key="k")
        with pytest.raises(QueueFullError, match="would hold 3 pending items and may hold 2"):
            queue.enqueue("three", connection=own)
        assert queue.enqueue("again", connection=own, key="k") == keyed
        assert queue.enqueue("new", connection=own, key="k", on_duplicate="replace") == keyed
        own.commit()
        assert [item.content for item in queue.items()] == ["one", "new"]


def test_settings_that_others_store_reach_who_only_enqueues_like_this(queue, path, own, until):
    def is_full():
        try:
            queue.enqueue("x", connection=own)
        except QueueFullError:
            return True
        finally:
            own.rollback()

    queue.enqueue("first")
    with Queue(path) as other:
        other.configure(max_pending=1)
    until(is_full)


def test_there_is_no_waiting_for_room_inside_a_transaction(queue, own):
    with pytest.raises(ValueError, match="wait cannot be given with connection"):
        queue.enqueue("x", connection=own, wait=1)


def test_asynchronous_connections_of_sqlalchemy_are_taken_by_an_async_queue(queue, path):
    aiosqlite = pytest.importorskip("aiosqlite")
    pytest.importorskip("greenlet")
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")

    async def main():
        engine = asynchronous.create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with AsyncQueue(path) as awaited:
            async with engine.begin() as connection:
                await awaited.enqueue("connection", connection=connection, key="k")
            async with asynchronous.AsyncSession(engine) as session, session.begin():
                assert await awaited.enqueue("session", connection=session, key="k") == 1
                await awaited.enqueue("session", connection=session)
            async with asynchronous.AsyncSession(engine) as session:
                await awaited.enqueue("gone", connection=session)
                with pytest.raises(TypeError, match="AsyncSession is asynchronous; AsyncQueue"):
                    queue.enqueue("x", connection=session)
        async with aiosqlite.connect(path) as connection:
            with pytest.raises(TypeError, match="Connection is asynchronous"):
                queue.enqueue("x", connection=connection)
        await engine.dispose()

    asyncio.run(main())
    assert [item.content for item in queue.items()] == ["connection", "session"]


def test_a_connection_of_django_is_taken(queue, path):
    with of_django(path) as connection:
        queue.enqueue("stays", connection=connection)
    with contextlib.suppress(LookupError), of_django(path) as connection:
        queue.enqueue("goes", connection=connection)
        raise LookupError
    assert [item.content for item in queue.items()] == ["stays"]


def test_a_connection_to_another_file_is_refused(queue, tmp_path):
    other = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(ValueError, match=r"other\.db.*memory\.db"):
        queue.enqueue("x", connection=other)
    other.close()
    private = sqlite3.connect(":memory:")
    with Queue(":memory:") as memory, closing(private), pytest.raises(ValueError, match="a queue in memory"):
        memory.enqueue("x", connection=private)


def test_something_else_is_no_connection(queue):
    with pytest.raises(TypeError, match="sqlite3, apsw, SQLAlchemy or Django"):
        queue.enqueue("x", connection=object())
    assert queue.pending() == 0


@pytest.mark.parametrize("kind", ["TABLE ingest_queue (content TEXT)", "VIEW ingest_queue AS SELECT 1 AS content"])
def test_a_temporary_table_of_the_same_name_catches_nothing(queue, own, kind):
    own.execute(f"CREATE TEMP {kind}")
    own.execute("CREATE TEMP TABLE membox_queue_counts (pending)")
    queue.configure(max_pending=10)
    id = queue.enqueue("x", connection=own, key="k")
    assert queue.enqueue("y", connection=own, key="k", on_duplicate="replace") == id
    own.commit()
    assert [(item.id, item.content) for item in queue.items()] == [(id, "y")]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_path_that_is_no_valid_text_can_be_used(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.db")
    with Queue(path) as queue, closing(sqlite3.connect(path)) as own:
        id = queue.enqueue("x", connection=own)
        own.commit()
        assert queue.claim().id == id


def test_a_connection_to_another_file_is_still_refused_by_its_path(queue, tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, pytest.raises(ValueError, match=r"other\.db"):
        queue.enqueue("x", connection=other)


def test_a_queue_in_memory_says_that_no_connection_can_write_to_it(own):
    with Queue(":memory:") as queue, pytest.raises(ValueError, match=r"a queue in memory.*use a file"):
        queue.enqueue("x", connection=own)
