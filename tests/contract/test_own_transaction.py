"""enqueue(connection=…): in the caller's own transaction, by the caller's own library, in the same process."""

import sqlite3
from contextlib import closing

import apsw
import pytest
import sqlalchemy
from membox_queue import DuplicateItemError, Queue
from sqlalchemy.orm import Session


@pytest.fixture
def own(path, queue):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, text TEXT)")
    yield connection
    connection.close()


@pytest.fixture
def engine(path, queue):
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


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


def test_sqlalchemy_connections_and_sessions_are_taken(queue, engine):
    with engine.begin() as connection:
        first = queue.enqueue("connection", connection=connection)
    with Session(engine) as session, session.begin():
        second = queue.enqueue("session", connection=session)
    with Session(engine) as session:
        queue.enqueue("gone", connection=session)
    assert [item.id for item in queue.items()] == [first, second]


def test_apsw_is_taken(queue, path):
    connection = apsw.Connection(str(path))
    with connection:
        id = queue.enqueue("x", connection=connection)
    connection.close()
    assert queue.claim().id == id


def test_a_connection_to_another_file_is_refused(queue, tmp_path):
    other = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(ValueError, match=r"other\.db.*memory\.db"):
        queue.enqueue("x", connection=other)
    other.close()
    private = sqlite3.connect(":memory:")
    with Queue(":memory:") as memory, closing(private), pytest.raises(ValueError, match="lives in"):
        memory.enqueue("x", connection=private)


def test_something_else_is_no_connection(queue):
    with pytest.raises(TypeError, match="sqlite3, apsw or SQLAlchemy"):
        queue.enqueue("x", connection=object())
    assert queue.pending() == 0
