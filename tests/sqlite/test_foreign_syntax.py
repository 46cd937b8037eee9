"""What runs on the caller's connection is understood by SQLite 3.24: its library may carry one that old."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "sqlite"

FUNCTIONS = {
    *(
        "abs",
        "changes",
        "coalesce",
        "count",
        "date",
        "datetime",
        "hex",
        "ifnull",
        "instr",
        "julianday",
        "last_insert_rowid",
    ),
    *(
        "length",
        "lower",
        "ltrim",
        "max",
        "min",
        "nullif",
        "printf",
        "quote",
        "raise",
        "random",
        "replace",
        "round",
        "rtrim",
    ),
    *("strftime", "substr", "sum", "time", "total", "trim", "typeof", "unicode", "upper", "zeroblob"),
}
"""Built-in functions of SQLite 3.24. JSON functions are none: they could be left out then."""

NOT_FUNCTIONS = {
    *(
        "and",
        "as",
        "by",
        "cast",
        "exists",
        "from",
        "in",
        "into",
        "is",
        "key",
        "not",
        "on",
        "or",
        "over",
        "select",
        "set",
    ),
    *("then", "values", "when", "where", "conflict", "case", "else", "limit", "union", "all", "default"),
}
"""Words that may stand before a parenthesis."""

NEWER = {
    "RETURNING (3.35)": r"\bRETURNING\b",
    "STRICT (3.37)": r"\)\s*STRICT\b",
    "a generated column (3.31)": r"\bGENERATED\s+ALWAYS\b|\bAS\s*\([^()]*\)\s*(STORED|VIRTUAL)\b",
    "sqlite_schema (3.33)": r"\bsqlite_schema\b",
    "UPDATE … FROM (3.33)": (
        r"\bUPDATE\s+(?:OR\s+\w+\s+)?[\w.]+(?:\s+AS\s+\w+)?(?:\s+INDEXED\s+BY\s+\w+)?\s+SET\b[^;()]*\bFROM\b"
    ),
    "NULLS FIRST (3.30)": r"\bNULLS\s+(FIRST|LAST)\b",
    "FILTER (3.30)": r"\bFILTER\s*\(",
    "a window function (3.25)": r"\bOVER\s*\(|\bWINDOW\s+\w+\s+AS\b",
    "IS DISTINCT FROM (3.39)": r"\bIS\s+(NOT\s+)?DISTINCT\s+FROM\b",
    "-> (3.38)": r"->",
    "MATERIALIZED (3.35)": r"\bMATERIALIZED\b",
    "a right or full join (3.39)": r"\b(RIGHT|FULL)\s+(OUTER\s+)?JOIN\b",
    "several upserts (3.35)": r"(?s)\bON\s+CONFLICT\b.*\bON\s+CONFLICT\b",
    "an upsert without a target (3.35)": r"\bON\s+CONFLICT\s+DO\s+UPDATE\b",
    "a digit separator (3.46)": r"\b\d+_\d+\b",
    "DROP or RENAME COLUMN (3.25, 3.35)": r"\b(DROP|RENAME)\s+COLUMN\b",
    "IIF (3.32)": r"\bIIF\s*\(",
}


def bare(sql):
    """Return a statement without its comments and its texts."""
    sql = re.sub(r"--[^\n]*", "", sql)
    return re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "''", sql)


def too_new(sql):
    """Return what in a statement, or in one of a trigger's, SQLite 3.24 does not know."""
    found = set()
    for text in bare(sql).split(";"):
        found |= {what for what, sign in NEWER.items() if re.search(sign, text, re.IGNORECASE)}
        called = {name.lower() for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\s*\(", text)} - NOT_FUNCTIONS
        tables = re.findall(r"\b(?:INTO|ON|TABLE|VIEW|INDEX)\s+(?:\w+\.)?(\w+)\s*\(", text, re.IGNORECASE)
        found |= called - {name.lower() for name in tables} - FUNCTIONS
    return sorted(found)


def foreign_statements():
    """The files of the statements for the caller's connection, by what the code of that connection names."""
    code = (CORE / "foreign.rs").read_text() + (CORE / "finish.rs").read_text() + (CORE / "repair.rs").read_text()
    names = set(re.findall(r'statement!\("(\w+)"\)', code))
    # Those that only our own connection runs.
    return sorted(names - {"retry_failed", "replay", "replayable"})


STATEMENTS = foreign_statements()


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_for_the_callers_connection_uses_nothing_newer(name):
    assert too_new((CORE / "sql" / f"{name}.sql").read_text()) == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_it_names_the_schema_of_every_table(name):
    text = bare((CORE / "sql" / f"{name}.sql").read_text())
    named = re.findall(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+((?:\w+\.)?\w+)", text, re.IGNORECASE)
    assert [
        table for table in named if not table.startswith("main.") and table not in ("SET", "pragma_database_list")
    ] == []


def test_there_are_statements_for_the_callers_connection():
    assert {"finish", "history_add", "rest_of_batch", "present", "enqueue", "cancel", "retry", "delete"} <= set(
        STATEMENTS
    )


def test_triggers_and_views_of_a_new_file_use_nothing_newer(queue, path):
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('trigger', 'view')"
        ).fetchall()
    assert len(objects) > 10
    assert {name: found for name, sql in objects if (found := too_new(sql))} == {}


def test_tables_and_indexes_use_nothing_newer(queue, path):
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index') "
            "AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
    assert {name: found for name, sql in objects if (found := too_new(sql))} == {}


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM main.t WHERE id = ?1 RETURNING id",
        "INSERT INTO main.t VALUES (unixepoch())",
        "SELECT json_extract(a, '$') FROM main.t",
        "CREATE TABLE t (a) STRICT",
        "UPDATE main.t SET a = u.a FROM main.u WHERE u.id = main.t.id",
        "SELECT row_number() OVER (ORDER BY a) FROM main.t",
        "SELECT name FROM main.sqlite_schema",
        "SELECT a -> 'b' FROM main.t",
        "SELECT a FROM main.t WHERE a IS NOT DISTINCT FROM ?1",
        "SELECT iif(a, 1, 2) FROM main.t",
        "SELECT concat(a, 'x') FROM main.t",
        "SELECT a FROM main.t ORDER BY a NULLS LAST",
        "CREATE TRIGGER x AFTER INSERT ON t BEGIN INSERT INTO u VALUES (json('{}')); END",
    ],
)
def test_what_is_newer_is_found(sql):
    assert too_new(sql)
