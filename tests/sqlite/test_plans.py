"""What the planner makes of the statements of the hot paths: their index, no scan, no sorting."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from membox_queue import Queue

STATEMENTS = Path(__file__).parents[2] / "src" / "sqlite" / "sql"

INDEXES = {
    "next": ["ingest_queue_ready"],
    "next_in_group": ["ingest_queue_front"],
    "next_group": ["ingest_queue_ready", "ingest_queue_working"],
    "next_free_in_group": ["ingest_queue_front", "ingest_queue_working"],
    "next_batch": ["ingest_queue_ready", "ingest_queue_working"],
    "next_beside": ["ingest_queue_front", "INTEGER PRIMARY KEY"],
    "next_of_batch": ["ingest_queue_group"],
    "rest_of_batch": ["ingest_queue_working"],
    "claim": ["INTEGER PRIMARY KEY"],
    "item": ["INTEGER PRIMARY KEY"],
    "finish": ["INTEGER PRIMARY KEY"],
    "extend": ["INTEGER PRIMARY KEY"],
    "after": ["PRIMARY KEY"],
    "after_circle": ["membox_queue_after_open"],
    "awaited_by": ["membox_queue_after_open"],
    "away": ["ingest_queue_away"],
    "blocked_newest_first": ["ingest_queue_blocked"],
    "blocked_oldest_first": ["ingest_queue_blocked"],
    "children": ["ingest_queue_children"],
    "expire": ["ingest_queue_expiring"],
    "needed_by": ["membox_queue_after_needs", "INTEGER PRIMARY KEY"],
    "remove_done": ["membox_queue_after_needs", "INTEGER PRIMARY KEY"],
    "scout": ["ingest_queue_ready", "ingest_queue_delayed", "ingest_queue_leases", "ingest_queue_expiring"],
    "bring_in_due": ["ingest_queue_delayed"],
    "expired": ["ingest_queue_leases"],
    "grant": ["ingest_queue_leases"],
    "ahead": ["ingest_queue_leases"],
    "find_key": ["ingest_queue_key ", "ingest_queue_keys"],
    "free_key": ["ingest_queue_key "],
    "newest_with_key": ["ingest_queue_keys"],
    "failures": ["ingest_queue_finished"],
    "finished_ids": ["ingest_queue_finished"],
    "retriable": ["ingest_queue_finished", "ingest_queue_keys"],
    "retry_failed": ["INTEGER PRIMARY KEY", "ingest_queue_key "],
    "counts": ["PRIMARY KEY"],
    "ended": ["ingest_queue_finished"],
    "timeless": ["ingest_queue_finished"],
    "purge": ["ingest_queue_finished", "ingest_queue_ready", "ingest_queue_delayed", "ingest_queue_leases"],
    "next_event": [
        "ingest_queue_delayed",
        "ingest_queue_leases",
        "membox_queue_schedules_next",
        "membox_queue_holds_until",
        "ingest_queue_expiring",
    ],
    "next_due": ["ingest_queue_delayed"],
    "holder_claims": ["ingest_queue_leases"],
    "in_process": ["ingest_queue_leases"],
    "known_schedule": ["PRIMARY KEY"],
    "held": ["ingest_queue_leases"],
    "workers": ["PRIMARY KEY"],
    "schedules_due": ["membox_queue_schedules_next"],
    "holds_over": ["membox_queue_holds_until"],
    "start_last": ["PRIMARY KEY"],
    "starts_forget": ["membox_queue_starts_at"],
    "waiting": ["ingest_queue_ready", "ingest_queue_group", "ingest_queue_delayed"],
    "groups": ["PRIMARY KEY"],
    "group_counts": ["PRIMARY KEY"],
    "groups_moved": ["PRIMARY KEY"],
    "ids_between": ["INTEGER PRIMARY KEY"],
    "id_ahead": ["INTEGER PRIMARY KEY"],
    "retry": ["INTEGER PRIMARY KEY", "ingest_queue_key"],
    "running": ["ingest_queue_leases"],
    "start_at": ["PRIMARY KEY"],
    "start_forget": ["PRIMARY KEY"],
}

# Statements for which a long table, or sorting, is no matter.
SLOW = {
    "blocked_by_work": "reads what is in work, which is never much",
    "after_circle": "walks through the open dependencies of one item",
    "all_items": "counts what is about to be removed",
    "mentions": "asks about the schema",
    "columns": "asks about the schema",
    "connection_file": "asks about the connection",
    "foreign_triggers": "asks about the schema",
    "history": "sorts the few attempts of one item that are kept",
    "ids_used_up": "reads one row for each table with AUTOINCREMENT, after an insert failed",
    "is_without_rowid": "asks about the schema",
    "kind_of": "asks about the schema",
    "objects": "asks about the schema",
    "queues": "has a row for each queue",
    "references": "asks about the schema",
    "running": "sorts what is in work, which is never much",
    "unknown_status": "is part of a check that reads the whole file",
}

MANY_DONE = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
INSERT INTO ingest_queue (content, status, finished_at, dedup_key, key_until)
SELECT 'x', 'done', '2026-01-01 00:00:00.000', 'k', 0 FROM n
"""


def statement(name: str) -> str:
    return re.sub(r"^--.*$", "", (STATEMENTS / f"{name}.sql").read_text(encoding="utf-8"), flags=re.MULTILINE)


def plan(connection: apsw.Connection, sql: str) -> list[str]:
    values = (1,) * max([int(number) for number in re.findall(r"\?(\d+)", sql)], default=0)
    return [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + sql, values)]


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    Queue(path).close()
    connection = apsw.Connection(str(path))
    # Membox's table, which only its own files have.
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    yield connection
    connection.close()


def slow(steps: list[str]) -> list[str]:
    """The steps that read a whole table or sort; what a statement has made itself is short."""
    own = r"CONSTANT ROW|\(subquery|priorities|first"
    return [step for step in steps if re.match(rf"SCAN (?!{own})", step) or "TEMP B-TREE" in step]


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_uses_its_index(connection, name):
    steps = plan(connection, statement(name))
    for index in INDEXES[name]:
        assert any(index in step for step in steps), steps


@pytest.mark.parametrize("name", sorted(file.stem for file in STATEMENTS.glob("*.sql")))
def test_a_statement_neither_scans_nor_sorts(connection, name):
    assert bool(slow(plan(connection, statement(name)))) == (name in SLOW)


def triggers(connection):
    """The conditions and statements of all triggers, the row's values as parameters."""
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        head, body = re.sub(r"(NEW|OLD)\.\w+", "?1", sql).split("BEGIN", 1)
        if " WHEN " in head:
            yield name, "SELECT " + head.split(" WHEN ")[1]
        for part in body.split(";")[:-1]:
            if "RAISE(" not in part:
                yield name, part


def test_a_trigger_neither_scans_nor_sorts(connection):
    for name, part in triggers(connection):
        # What is being replaced is a row or two.
        steps = [step for step in plan(connection, part) if step not in ("SCAN former", "SCAN membox_queue_replaced")]
        assert not slow(steps), (name, steps)


def test_the_groups_trigger_uses_the_groups_indexes_and_counts_no_rows(connection):
    plans = [plan(connection, part) for name, part in triggers(connection) if name == "membox_queue_group_moved"]
    assert [sum("ingest_queue_group (" in step for step in steps) for steps in plans] == [0, 0, 1, 1]
    assert not [step for steps in plans for step in steps if "ingest_queue_working" in step]


@pytest.mark.parametrize("kind", ["find_key", "ended"])
def test_what_a_look_costs_does_not_grow_with_the_rows_it_passes(tmp_path, kind):
    path = tmp_path / "memory.db"
    Queue(path).close()
    with closing(apsw.Connection(str(path))) as connection:
        costs = []
        for passed in (20, 520):
            connection.execute(MANY_DONE)
            looks = {"find_key": ("ingest", "k", 0, 10**15), "ended": ("ingest", "done", "2027", passed, 0, 10)}
            costs.append(steps_of(connection, statement(kind), looks[kind]))
    assert costs[1] <= costs[0] + 1


def steps_of(connection: apsw.Connection, sql: str, values: tuple[object, ...]) -> int:
    """How many steps SQLite's machine takes, by tens."""
    steps = []
    connection.set_progress_handler(lambda: bool(steps.append(1)), 10)
    list(connection.execute(sql, values))
    connection.set_progress_handler(None)
    return len(steps)
