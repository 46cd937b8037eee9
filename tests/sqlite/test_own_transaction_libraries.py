"""Ends in the caller's own transaction, on every library whose connections are taken, and however they are set up."""

import sqlite3
import sys
from contextlib import closing, contextmanager, suppress

import pytest
from membox_queue import StaleClaimError

from sqlite.libraries import LIBRARIES, of_a_session, of_django, of_sqlalchemy, write

SETTINGS = ["trusted_schema = OFF", "recursive_triggers = ON", "foreign_keys = ON"]


@contextmanager
def of_sqlite3_with_autocommit(path, autocommit):
    with closing(sqlite3.connect(path, autocommit=autocommit)) as connection:
        if autocommit:
            connection.execute("BEGIN")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK") if autocommit else connection.rollback()
            raise
        connection.execute("COMMIT") if autocommit else connection.commit()


MODES = [] if sys.version_info < (3, 12) else [True, False]


@pytest.fixture(params=[*LIBRARIES, *MODES])
def transaction(request, path, queue):
    """Begin a transaction of some library, to be committed or rolled back at the end of its block."""
    if request.param in MODES:
        return lambda: of_sqlite3_with_autocommit(path, request.param)
    return lambda: request.param(path)


def claimed(queue):
    queue.enqueue("x")
    return queue.claim()


def test_writes_the_end_and_a_follow_up_are_committed_together(queue, transaction, effects):
    item = claimed(queue)
    with transaction() as connection:
        write(connection, "one")
        queue.mark_done(item, {"n": 1}, connection=connection)
        queue.enqueue("next", connection=connection)
    assert (effects(), queue.get(1).status, queue.get(1).result) == (["one"], "done", {"n": 1})
    assert queue.claim().content == "next"


def test_and_rolled_back_together(queue, transaction, effects):
    item = claimed(queue)
    with suppress(LookupError), transaction() as connection:
        write(connection, "one")
        queue.mark_done(item, connection=connection)
        raise LookupError
    assert (effects(), queue.get(1).status) == ([], "processing")


def test_the_end_alone_begins_the_transaction(queue, transaction):
    item = claimed(queue)
    with suppress(LookupError), transaction() as connection:
        queue.mark_done(item, connection=connection)
        raise LookupError
    assert queue.get(1).status == "processing"
    with transaction() as connection:
        queue.mark_done(item, connection=connection)
    assert queue.get(1).status == "done"


def test_a_lost_claim_undoes_the_writes(queue, transaction, effects):
    item = claimed(queue)
    queue.release(item)
    queue.claim()
    refused = pytest.raises(StaleClaimError)
    with refused, transaction() as connection:
        write(connection, "twice")
        queue.mark_done(item, connection=connection)
    assert effects() == []


def test_item_transaction_is_a_savepoint_in_the_callers_own(queue, transaction, effects):
    item = claimed(queue)
    with transaction() as connection:
        write(connection, "before")
        with suppress(LookupError), item.transaction(connection):
            write(connection, "undone")
            raise LookupError("boom")
        write(connection, "kept")
        assert queue.get(1).status == "processing"
    assert (effects(), queue.get(1).error) == (["before", "kept"], "LookupError: boom")
    queue.retry(1)
    item = queue.claim()
    with transaction() as connection:
        write(connection, "after")
        with item.transaction(connection):
            write(connection, "more")
        assert queue.get(1).status == "processing"
    assert (effects()[2:], queue.get(1).status) == (["after", "more"], "done")


@pytest.mark.parametrize("library", [of_sqlalchemy, of_a_session])
def test_a_block_that_comes_first_in_a_transaction_of_sqlalchemy_is_a_savepoint_too(queue, path, library, effects):
    item = claimed(queue)
    with library(path) as connection:
        with suppress(LookupError), item.transaction(connection):
            write(connection, "undone")
            raise LookupError("boom")
        assert queue.get(1).status == "processing"
    assert (effects(), queue.get(1).status) == ([], "failed")
    item = claimed(queue)
    with suppress(LookupError), library(path) as connection:
        with item.transaction(connection):
            write(connection, "undone")
        assert queue.get(2).status == "processing", "the caller commits"
        raise LookupError
    assert (effects(), queue.get(2).status) == ([], "processing")


@contextmanager
def plain_connections(path, kind):
    """A connection on which no transaction is open."""
    if kind == "django":
        with of_django(path) as connection:
            connection.rollback()
            connection.set_autocommit(True)
            yield connection
            assert connection.get_autocommit()
            connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
        return
    if kind == "apsw":
        with closing(pytest.importorskip("apsw").Connection(str(path))) as connection:
            yield connection
        return
    if kind.startswith("sqlalchemy"):
        sqlalchemy = pytest.importorskip("sqlalchemy")
        orm = pytest.importorskip("sqlalchemy.orm")
        options = {"isolation_level": "AUTOCOMMIT"} if "autocommit" in kind else {}
        engine = sqlalchemy.create_engine(f"sqlite:///{path}", **options)
        with closing(orm.Session(engine) if "session" in kind else engine.connect()) as connection:
            yield connection
        engine.dispose()
        return
    options = {"isolation_level": None} if kind == "sqlite3 without begin" else {}
    if kind == "sqlite3 autocommit":
        options = {"autocommit": True} if MODES else {"isolation_level": None}
    with closing(sqlite3.connect(path, **options)) as connection:
        yield connection


AUTOCOMMIT = ["sqlite3 without begin", "sqlite3 autocommit", "apsw", "sqlalchemy autocommit", "django"]
ALL = ["sqlite3", "sqlalchemy", "sqlalchemy session", *AUTOCOMMIT]


@pytest.mark.parametrize("kind", AUTOCOMMIT)
def test_a_connection_that_commits_each_statement_by_itself_is_refused(queue, path, kind):
    item = claimed(queue)
    with plain_connections(path, kind) as connection:
        for call in (
            lambda: queue.mark_done(item, connection=connection),
            lambda: queue.cancel(1, connection=connection),
            lambda: queue.enqueue("y", connection=connection),
        ):
            with pytest.raises(ValueError, match="no open transaction"):
                call()
    assert [item.status for item in queue.items()] == ["processing"]


@pytest.mark.parametrize("kind", ALL)
def test_item_transaction_is_a_transaction_where_none_is_open(queue, path, kind, effects):
    with plain_connections(path, kind) as connection:
        item = claimed(queue)
        with item.transaction(connection):
            write(connection, "one")
        assert (effects(), queue.get(1).status) == (["one"], "done")
        item = claimed(queue)
        with suppress(LookupError), item.transaction(connection):
            write(connection, "undone")
            raise LookupError("boom")
        assert (effects(), queue.get(2).error) == (["one"], "LookupError: boom")
        item = claimed(queue)
        queue.release(item)
        queue.claim()
        with pytest.raises(StaleClaimError), item.transaction(connection):
            write(connection, "never")
        queue.enqueue("the file is free")
        assert effects() == ["one"]


@pytest.mark.parametrize("isolation_level", ["DEFERRED", "IMMEDIATE", "EXCLUSIVE"])
def test_every_isolation_level_is_taken(queue, path, effects, isolation_level):
    item = claimed(queue)
    with closing(sqlite3.connect(path, isolation_level=isolation_level)) as own:
        queue.mark_done(item, connection=own)
        write(own, "one")
        own.commit()
    assert (effects(), queue.get(1).status) == (["one"], "done")


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_connection_do_not_matter(queue, path, effects, setting):
    queue.enqueue("x", group="g", key="k")
    item = queue.claim()
    with closing(sqlite3.connect(path)) as own:
        own.execute(f"PRAGMA {setting}")
        own.row_factory = sqlite3.Row
        own.text_factory = bytes
        write(own, "one")
        queue.mark_failed(item, "no", connection=own)
        queue.retry(1, connection=own)
        queue.enqueue("next", connection=own, group="g")
        own.commit()
    assert effects() == ["one"]
    assert [item.content for item in queue.claim_group()] == ["x", "next"]


def test_a_batch_is_released_on_a_connection_that_returns_bytes(queue, path):
    ids = [queue.enqueue(text, group="g") for text in "ab"]
    first, _ = queue.claim_group()
    with closing(sqlite3.connect(path)) as own:
        own.text_factory = bytes
        queue.mark_failed(first, "no", connection=own)
        own.commit()
    assert queue.get(ids[1]).status == "pending"
    assert queue.history(ids[1])[0].worker == first.worker


def test_a_connection_to_another_file_is_refused_by_both_names(queue, path, tmp_path):
    item = claimed(queue)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        with pytest.raises(ValueError, match=r"other\.db.*memory\.db"):
            queue.mark_done(item, connection=other)
        with pytest.raises(ValueError, match=r"other\.db.*memory\.db"), item.transaction(other):
            pass
        assert not other.in_transaction


def test_a_temporary_table_of_the_same_name_catches_no_end(queue, path):
    item = claimed(queue)
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TEMP TABLE ingest_queue (id, status)")
        own.execute("CREATE TEMP TABLE membox_queue_history (item)")
        queue.mark_failed(item, "no", connection=own)
        queue.retry(1, connection=own)
        queue.cancel(1, connection=own)
        own.commit()
    assert (queue.get(1).status, len(queue.history(1))) == ("cancelled", 1)


def test_an_item_that_a_foreign_key_refers_to_is_not_deleted(queue, path, sql):
    queue.enqueue("x")
    queue.enqueue("y")
    sql(path, "CREATE TABLE notes (item INTEGER REFERENCES ingest_queue (id) ON DELETE CASCADE)")
    with closing(sqlite3.connect(path)) as own:
        own.execute("INSERT INTO notes VALUES (1)")
        with pytest.raises(Exception, match="table notes refers to it"):
            queue.delete(1, connection=own)
        assert queue.delete(2, connection=own)
        own.commit()
    assert [item.id for item in queue.items()] == [1]


def test_a_done_item_that_a_foreign_key_refers_to_is_kept(path, queue, sql):
    sql(path, "CREATE TABLE notes (item INTEGER REFERENCES ingest_queue (id) ON DELETE CASCADE)")
    queue.configure(keep_for=0)
    item = claimed(queue)
    with closing(sqlite3.connect(path)) as own:
        own.execute("PRAGMA foreign_keys = ON")
        own.execute("INSERT INTO notes VALUES (1)")
        queue.mark_done(item, connection=own)
        own.commit()
        assert own.execute("SELECT count(*) FROM notes").fetchone() == (1,)
    assert queue.get(1).status == "done"


def test_an_end_that_a_trigger_ignored_is_an_error(queue, path, sql):
    item = claimed(queue)
    sql(path, "CREATE TRIGGER no_end BEFORE UPDATE ON ingest_queue BEGIN SELECT RAISE(IGNORE); END")
    with (
        closing(sqlite3.connect(path)) as own,
        pytest.raises(Exception, match=r"end of item 1 was not written.*no_end"),
    ):
        queue.mark_done(item, connection=own)


def test_objects_of_a_session_are_part_of_the_block(queue, path, effects):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    base = orm.declarative_base()

    class Order(base):
        __tablename__ = "orders"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)

    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        with claimed(queue).transaction(session):
            session.add(Order(id=1))
        with suppress(LookupError), claimed(queue).transaction(session):
            session.add(Order(id=2))
            raise LookupError
        with session.begin():
            with suppress(LookupError), claimed(queue).transaction(session):
                session.add(Order(id=3))
                raise LookupError
            session.add(Order(id=4))
        with pytest.raises(sqlalchemy.exc.IntegrityError), claimed(queue).transaction(session):
            session.add(Order(id=1))
        with session.begin():
            assert session.scalars(sqlalchemy.select(Order.id)).all() == [1, 4]
    engine.dispose()
    assert [item.status for item in queue.items()] == ["done", "failed", "failed", "failed"]
