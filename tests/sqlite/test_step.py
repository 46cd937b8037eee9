"""item.step with connection=…: its effect and its record in the caller's own transaction, together or not at all."""

import asyncio
import sqlite3
from contextlib import closing, suppress

import pytest
from membox_queue import AsyncQueue, Queue, StaleClaimError

from sqlite.libraries import LIBRARIES


@pytest.fixture(params=LIBRARIES)
def transaction(request, path, queue):
    """Begin a transaction of some library, to be committed or rolled back at the end of its block."""
    return lambda: request.param(path)


def recorded(path, sql):
    return [name for (name,) in sql(path, "SELECT name FROM membox_queue_steps ORDER BY name")]


def test_the_step_is_recorded_by_the_callers_commit(queue, path, sql, transaction):
    queue.enqueue("x")
    item = queue.claim()
    with transaction() as connection:
        assert item.step("publish", lambda: {"done": 1}, connection=connection) == {"done": 1}
        assert recorded(path, sql) == []
    assert recorded(path, sql) == ["publish"]
    queue.release(item)
    assert queue.claim().step("publish", pytest.fail) == {"done": 1}


def test_a_rollback_leaves_neither_effect_nor_step(queue, path, sql):
    sql(path, "CREATE TABLE effects (item)")
    queue.enqueue("x")
    calls = []
    for attempt in (1, 2, 3):
        item = queue.claim()
        with closing(sqlite3.connect(path)) as connection, suppress(LookupError), connection:

            def publish(connection=connection, attempt=attempt):
                calls.append(attempt)
                connection.execute("INSERT INTO effects VALUES (?)", [attempt])

            item.step("publish", publish, connection=connection)
            if attempt == 1:
                raise LookupError
        queue.release(item)
    assert calls == [1, 2]
    assert sql(path, "SELECT item FROM effects") == [[2]]


def test_a_late_holder_raises_so_that_its_writes_are_undone(queue, path, sql, clock, transaction):
    queue.enqueue("x")
    late = queue.claim(lease=1)
    clock.advance(2)
    queue.claim()
    with pytest.raises(StaleClaimError) as raised, transaction() as connection:
        late.step("publish", lambda: 1, connection=connection)
    assert raised.value.id == late.id
    assert recorded(path, sql) == []


def test_a_connection_that_commits_each_statement_is_refused(queue, path, sql):
    queue.enqueue("x")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        item = queue.claim()
        with pytest.raises(ValueError, match="no open transaction"):
            item.step("publish", lambda: 1, connection=connection)
    assert recorded(path, sql) == []


def test_a_connection_to_another_file_is_refused(queue, tmp_path):
    queue.enqueue("x")
    item = queue.claim()
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, pytest.raises(ValueError, match=r"other\.db"):
        item.step("publish", lambda: 1, connection=connection)


def test_in_asyncio_on_a_connection_of_sqlalchemy(path, sql):
    sqlalchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
    pytest.importorskip("aiosqlite")

    async def main():
        engine = sqlalchemy.create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with AsyncQueue(path) as queue:
            await queue.enqueue("x")
            item = await queue.claim()
            async with engine.begin() as connection:
                assert await item.step("publish", lambda: 5, connection=connection) == 5
            await queue.release(item)
        await engine.dispose()

    asyncio.run(main())
    assert recorded(path, sql) == ["publish"]
    with Queue(path) as queue:
        assert queue.claim().step("publish", pytest.fail) == 5


def test_steps_go_with_their_item(queue, path, sql):
    queue.enqueue_many(["deleted", "kept"])
    for _ in range(2):
        with queue.claim() as item:
            item.step("a", lambda: 1)
    queue.delete(1)
    assert sql(path, "SELECT item, name, kind, result FROM membox_queue_steps") == [[2, "a", "step", "1"]]


def test_content_that_is_not_kept_leaves_no_results_of_steps(open_queue, path, sql):
    queue = open_queue("brief", keep_content=False)
    queue.enqueue("x")
    with queue.claim() as item:
        item.step("a", lambda: "secret")
    assert recorded(path, sql) == []
