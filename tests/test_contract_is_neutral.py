"""The contract tests name no engine: no path of a database, no SQLite, no SQL."""

import ast
import re
from pathlib import Path

import pytest

CONTRACT = Path(__file__).parent / "contract"
FILES = sorted(CONTRACT.glob("*.py"))

NAMES_AN_ENGINE = {
    "SQLite": re.compile(r"sqlite|apsw", re.IGNORECASE),
    "the path of a database": re.compile(r"\.db\b|-wal\b|-shm\b|:memory:"),
    "a queue opened by its path": re.compile(r"Queue(\[\w+\])?\((tmp_)?path\b"),
}
SQL = re.compile(
    r"\b(SELECT\b.+\bFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\b.+\bSET\s|DELETE\s+FROM\s|CREATE\s+\w|PRAGMA\s+\w)",
    re.DOTALL,
)
FIXTURES_OF_SQLITE = {"path", "sql", "writer"}


def found(text):
    """Return what in the text names an engine, each with its line."""
    lines = list(enumerate(text.splitlines(), 1))
    named = [(number, what) for what, sign in NAMES_AN_ENGINE.items() for number, line in lines if sign.search(line)]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value):
            named.append((node.lineno, "SQL"))
        elif isinstance(node, ast.arg) and node.arg in FIXTURES_OF_SQLITE:
            named.append((node.lineno, "a fixture of SQLite"))
    return named


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_contract_test_names_no_engine(file):
    assert found(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import sqlite3",
        "with Queue(path) as queue: pass",
        "queue = Queue[Page](path)",
        "queue = AsyncQueue(path, 'mail')",
        "queue = Queue(tmp_path / name)",
        "other = tmp_path / 'other.db'",
        "queue = Queue(':memory:')",
        "log = address.with_name('memory-wal')",
        "def test_it(queue, path, clock):\n    pass",
        "def test_it(\n    queue, sql\n):\n    pass",
        "statement = 'SELECT count(*) FROM items'",
        "statement = 'INSERT OR REPLACE INTO items VALUES (1)'",
        "statement = 'UPDATE items SET status = 1'",
        "statement = 'DELETE FROM items'",
        "statement = 'CREATE TABLE notes (text)'",
        "statement = 'PRAGMA user_version'",
    ],
)
def test_what_names_an_engine_is_found(line):
    assert found(line)


def test_there_are_contract_tests():
    assert len(FILES) > 40
