"""What the planner makes of the statements of the hot paths: their index, no scan, no sorting."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest
from membox_queue import Queue

STATEMENTS = Path(__file__).parents[1] / "src" / "sqlite" / "sql"

INDEXES = {
    "next": ["ingest_queue_ready"],
    "next_in_group": ["ingest_queue_front"],
    "next_group": ["ingest_queue_heads", "ingest_queue_working"],
    "next_batch": ["ingest_queue_ready", "ingest_queue_working"],
    "group_of": ["INTEGER PRIMARY KEY"],
    "next_of_batch": ["ingest_queue_group"],
    "rest_of_batch": ["ingest_queue_working"],
    "claim": ["INTEGER PRIMARY KEY"],
    "claimed": ["INTEGER PRIMARY KEY"],
    "settle": ["INTEGER PRIMARY KEY"],
    "extend": ["INTEGER PRIMARY KEY"],
    "attention": ["ingest_queue_ready", "ingest_queue_delayed", "ingest_queue_leases"],
    "bring_in_due": ["ingest_queue_delayed"],
    "expired": ["ingest_queue_leases"],
    "ahead": ["ingest_queue_leases"],
    "find_key": ["ingest_queue_keys"],
    "get_by_key": ["ingest_queue_keys"],
    "failures": ["ingest_queue_finished"],
    "retry_failed": ["ingest_queue_finished", "ingest_queue_key"],
    "counts": ["PRIMARY KEY"],
    "prune": ["ingest_queue_finished"],
    "next_event": [
        "ingest_queue_delayed",
        "ingest_queue_leases",
        "membox_queue_schedules_next",
        "membox_queue_holds_until",
    ],
    "next_due": ["ingest_queue_delayed"],
    "holder_claims": ["ingest_queue_leases"],
    "in_process": ["ingest_queue_leases"],
    "schedules_due": ["membox_queue_schedules_next"],
    "holds_over": ["membox_queue_holds_until"],
    "start_last": ["PRIMARY KEY"],
    "starts_forget": ["membox_queue_starts_at"],
    "waiting": ["ingest_queue_ready", "ingest_queue_group", "ingest_queue_delayed"],
}


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
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", INDEXES)
def test_a_hot_statement_uses_its_index_and_neither_scans_nor_sorts(connection, name):
    steps = plan(connection, statement(name))
    for index in INDEXES[name]:
        assert any(index in step for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN ingest_queue") or "TEMP B-TREE" in step], steps


def test_the_groups_trigger_uses_the_groups_indexes(connection):
    (sql,) = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'membox_queue_group_moved'"
    ).fetchone()
    body = sql[sql.index("BEGIN") + 5 : sql.rindex("END")]
    for update in body.replace("NEW.queue", "?1").replace("NEW.group_key", "?2").split(";")[:-1]:
        steps = plan(connection, update)
        assert any("ingest_queue_group" in step for step in steps), steps
        assert any("ingest_queue_working" in step for step in steps), steps
        assert not [step for step in steps if step.startswith("SCAN ingest_queue") or "TEMP B-TREE" in step], steps
