"""enqueue_many and schedule with connection=…: all or nothing, in the caller's own transaction."""

import asyncio
import sqlite3
import sys
from contextlib import closing, suppress

import pytest
from membox_queue import AsyncQueue, DuplicateItemError, NewItem, Queue, QueueFullError

from sqlite.libraries import LIBRARIES

REFUSAL = """
CREATE TRIGGER no_b BEFORE INSERT ON ingest_queue WHEN NEW.content = 'b' BEGIN SELECT RAISE({}, 'no b'); END
"""


@pytest.fixture(params=LIBRARIES)
def transaction(request, path, queue):
    """Begin a transaction of some library, to be committed or rolled back at the end of its block."""
    return lambda: request.param(path)


def contents(queue):
    return [item.content for item in queue.items()]


def test_all_items_are_there_after_the_commit(queue, transaction):
    with transaction() as connection:
        ids = queue.enqueue_many(["a", b"b", NewItem({"c": 1}, key="k", group="g")], connection=connection)
        assert queue.enqueue_many([NewItem("again", key="k")], connection=connection) == [ids[2]]
        assert queue.pending() == 0
    assert ids == [item.id for item in queue.items()]
    assert contents(queue) == ["a", b"b", {"c": 1}]


def test_items_go_into_several_queues_in_the_callers_transaction(queue, open_queue, transaction):
    full = open_queue("full", max_pending=2)
    full.enqueue("there")
    new = [NewItem("a", queue="other"), NewItem("b", queue=full), "c"]
    with transaction() as connection:
        ids = queue.enqueue_many(new, connection=connection)
        with pytest.raises(QueueFullError) as refused:
            queue.enqueue_many(new, connection=connection)
        assert refused.value.queue == "full"
    other = open_queue("other")
    assert [contents(other), contents(full), contents(queue)] == [["a"], ["there", "b"], ["c"]]
    assert other.get(ids[0]).content == "a"


def test_a_rollback_leaves_nothing(queue, transaction):
    with suppress(LookupError), transaction() as connection:
        queue.enqueue_many(["a", "b"], connection=connection)
        queue.schedule("s", "x", every=60, connection=connection)
        raise LookupError
    assert (contents(queue), queue.schedules()) == ([], [])


def test_one_that_is_refused_takes_the_others_along_but_not_what_was_written_before(queue, transaction):
    queue.enqueue("there", key="k")
    with transaction() as connection:
        queue.enqueue("before", connection=connection)
        with pytest.raises(DuplicateItemError) as refused:
            queue.enqueue_many(["a", NewItem("b", key="k", on_duplicate="raise"), "c"], connection=connection)
        assert refused.value.id == 1
        queue.enqueue_many(["after"], connection=connection)
    assert contents(queue) == ["there", "before", "after"]


def test_a_full_queue_takes_all_or_none(path, transaction, queue):
    queue.configure(max_pending=3)
    with transaction() as connection:
        queue.enqueue_many(["a", NewItem("b", key="k")], connection=connection)
        with pytest.raises(QueueFullError, match="would hold 4 pending items and may hold 3") as refused:
            queue.enqueue_many(["c", "d"], connection=connection)
        assert (refused.value.limit, refused.value.pending) == (3, 4)
        with pytest.raises(QueueFullError, match="the batch has 4 new items"):
            queue.enqueue_many(list("wxyz"), connection=connection)
        queue.enqueue_many(["c", NewItem("again", key="k")], connection=connection)
    assert contents(queue) == ["a", "b", "c"]


def test_a_schedule_is_there_after_the_commit_and_keeps_its_next_tick(queue, transaction, clock):
    with transaction() as connection:
        made = queue.schedule("s", {"n": 1}, every=60, key="k", priority=3, connection=connection)
        assert queue.schedules() == []
    (stored,) = queue.schedules()
    for schedule in (made, stored):
        assert (schedule.name, schedule.content, schedule.every) == ("s", {"n": 1}, 60)
        assert (schedule.key, schedule.priority) == ("k", 3)
    assert made.next_at == stored.next_at
    clock.advance(61)
    assert queue.claim().content == {"n": 1}
    clock.advance(30)
    (ticked,) = queue.schedules()
    with transaction() as connection:
        same = queue.schedule("s", {"n": 2}, every=60, connection=connection)
    assert (same.next_at, same.last_at, same.last_id) == (ticked.next_at, ticked.last_at, 1)
    with transaction() as connection:
        other = queue.schedule("s", {"n": 2}, cron="0 3 * * *", tz="Europe/Berlin", connection=connection)
    assert other.next_at != ticked.next_at
    (stored,) = queue.schedules()
    assert (stored.cron, stored.tz, stored.every, stored.last_id) == ("0 3 * * *", "Europe/Berlin", None, 1)


def test_a_transaction_that_the_library_would_begin_is_begun_and_left_to_the_caller(queue, path):
    with closing(sqlite3.connect(path)) as own:
        assert not own.in_transaction
        queue.enqueue_many(["a", "b"], connection=own)
        assert own.in_transaction
        assert queue.pending() == 0
        own.commit()
        queue.schedule("s", "x", every=60, connection=own)
        own.rollback()
    assert (contents(queue), queue.schedules()) == (["a", "b"], [])


def test_a_transaction_that_was_begun_for_a_refused_call_does_not_stay_open(queue, path):
    queue.enqueue("there", key="k")
    with closing(sqlite3.connect(path)) as own:
        with pytest.raises(DuplicateItemError):
            queue.enqueue_many(["a", NewItem("b", key="k", on_duplicate="raise")], connection=own)
        assert not own.in_transaction
        queue.enqueue("others can write")
    assert contents(queue) == ["there", "others can write"]


@pytest.mark.parametrize("kind", ["sqlite3", "apsw", "autocommit"])
def test_a_connection_that_commits_each_statement_is_refused(queue, path, kind):
    if kind == "apsw":
        own = pytest.importorskip("apsw").Connection(str(path))
    elif kind == "autocommit" and sys.version_info >= (3, 12):
        own = sqlite3.connect(path, autocommit=True)
    else:
        own = sqlite3.connect(path, isolation_level=None)
    with closing(own):
        for call in (
            lambda: queue.enqueue_many(["a", "b"], connection=own),
            lambda: queue.schedule("s", "x", every=60, connection=own),
        ):
            with pytest.raises(ValueError, match=r"no open transaction.*begin a transaction first"):
                call()
    assert (contents(queue), queue.schedules()) == ([], [])


def test_what_the_library_refuses_is_its_own_error_and_undoes_everything(queue, path, sql):
    sql(path, REFUSAL.format("ABORT"))
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TABLE orders (id INTEGER)")
        own.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError, match="no b"):
            queue.enqueue_many(["a", "b", "c"], connection=own)
        own.commit()
        assert own.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    assert contents(queue) == []


def test_an_error_that_ends_the_whole_transaction_is_the_one_that_is_raised(queue, path, sql):
    sql(path, REFUSAL.format("ROLLBACK"))
    with closing(sqlite3.connect(path)) as own:
        own.execute("BEGIN")
        with pytest.raises(sqlite3.IntegrityError, match="no b"):
            queue.enqueue_many(["a", "b"], connection=own)
        assert not own.in_transaction
    assert contents(queue) == []


def test_nothing_to_enqueue_is_nothing_to_write(queue, path):
    with closing(sqlite3.connect(path)) as own, own:
        assert queue.enqueue_many([], connection=own) == []


def test_wait_and_spawn_are_refused(queue, path):
    with closing(sqlite3.connect(path)) as own:
        with pytest.raises(ValueError, match="wait cannot be given with connection"):
            queue.enqueue_many(["a"], connection=own, wait=1)
        with pytest.raises(ValueError, match="call spawn_worker after your commit"):
            queue.enqueue_many(["a"], connection=own, spawn="json:dumps")


def test_a_temporary_table_of_the_same_name_catches_no_schedule(queue, path):
    with closing(sqlite3.connect(path)) as own:
        own.execute("CREATE TEMP TABLE membox_queue_schedules (name)")
        queue.schedule("s", "x", every=60, connection=own)
        own.commit()
    assert [schedule.name for schedule in queue.schedules()] == ["s"]


def test_asynchronous_connections_of_sqlalchemy_are_taken_by_an_async_queue(queue, path):
    pytest.importorskip("aiosqlite")
    pytest.importorskip("greenlet")
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")

    async def main():
        engine = asynchronous.create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with AsyncQueue(path) as awaited:
            async with engine.begin() as connection:
                assert await awaited.enqueue_many(["a", "b"], connection=connection) == [1, 2]
                await awaited.schedule("s", "x", every=60, connection=connection)
            async with asynchronous.AsyncSession(engine) as session, session.begin():
                await awaited.enqueue("c", connection=session)
                bad = [NewItem("d", key="k"), NewItem("e", key="k", on_duplicate="raise")]
                with pytest.raises(DuplicateItemError):
                    await awaited.enqueue_many(bad, connection=session)
            async with asynchronous.AsyncSession(engine) as session:
                await awaited.enqueue_many(["gone"], connection=session)
        await engine.dispose()

    asyncio.run(main())
    assert contents(queue) == ["a", "b", "c"]
    assert [schedule.name for schedule in queue.schedules()] == ["s"]


def test_a_waiting_worker_hears_of_the_commit(path):
    with Queue(path) as queue, closing(sqlite3.connect(path)) as own:
        queue.enqueue_many(["a"], connection=own)
        own.commit()
        assert queue.claim(wait=30).content == "a"
