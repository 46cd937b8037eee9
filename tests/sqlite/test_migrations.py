"""Migrations of the application beside the queue: Alembic and Django leave its tables alone, and mishaps are mended."""

import importlib
import logging
import os
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from blocks import blocks_of
from membox_queue import NewItem, Queue
from membox_queue.alembic import include_name, include_object
from programs import PROGRAMS

alembic = pytest.importorskip("alembic")
sqlalchemy = pytest.importorskip("sqlalchemy")

from alembic import command  # noqa: E402
from alembic.autogenerate import produce_migrations  # noqa: E402
from alembic.config import Config  # noqa: E402
from alembic.migration import MigrationContext  # noqa: E402
from alembic.operations import Operations  # noqa: E402
from alembic.operations.ops import DropIndexOp, DropTableOp  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "migrations.md"

MODELS = """
from sqlalchemy import Integer, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

class Base(DeclarativeBase): pass

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(String(20))
"""


@pytest.fixture
def used(path):
    """A file with a queue that has groups, keys and history."""
    with Queue(path) as queue:
        queue.enqueue_many([NewItem("a", group="g"), NewItem("b", group="g"), NewItem("c", key="k")])
        queue.mark_failed(queue.claim(), "no")
    return path


def schema(path):
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    connection.close()
    return {row for row in found if row[1].startswith(("ingest_queue", "membox_queue_"))}


def compared(path, metadata, apply=False, **options):
    """What autogenerate would do, flattened; with `apply` it is done."""
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("ignore", sqlalchemy.exc.SAWarning)
        context = MigrationContext.configure(connection, opts=options)
        found = produce_migrations(context, metadata).upgrade_ops.ops
        steps = [step for op in found for step in getattr(op, "ops", [op])]
        if apply:
            with context.begin_transaction():
                operations = Operations(context)
                for step in steps:
                    operations.invoke(step)
            connection.commit()
    engine.dispose()
    return steps


def metadata():
    made = sqlalchemy.MetaData()
    sqlalchemy.Table("orders", made, sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True))
    return made


def test_without_our_filter_alembic_would_drop_the_queue(used):
    steps = compared(used, metadata())
    assert "ingest_queue" in {step.table_name for step in steps if isinstance(step, DropTableOp)}


def test_with_our_filter_alembic_sees_only_the_application(used):
    steps = compared(used, metadata(), include_name=include_name)
    assert [(type(step).__name__, step.table_name) for step in steps] == [("CreateTableOp", "orders")]


def test_a_model_of_our_table_is_not_created_either(used):
    tables = metadata()
    sqlalchemy.Table("ingest_queue", tables, sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True))
    named = {"include_name": include_name}
    assert {step.table_name for step in compared(used, tables, **named)} == {"orders", "ingest_queue"}
    steps = compared(used, tables, **named, include_object=include_object)
    assert [step.table_name for step in steps] == ["orders"]


@pytest.mark.parametrize("name", ["orders", "ingest_queue_notes", "membox", "membox_queue", None])
def test_tables_of_the_application_are_compared(name):
    assert include_name(name, "table", {})
    assert include_name(name, "column", {})
    assert include_object(None, name, "table", True, None)


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index:sqlalchemy.exc.SAWarning")
def test_the_env_of_the_docs_makes_upgrades_and_downgrades_beside_the_queue(used, tmp_path, monkeypatch):
    (env,) = [block.text for block in blocks_of(DOCS) if "include_name" in block.text]
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "models", raising=False)
    config = Config(stdout=open(os.devnull, "w"))  # noqa: SIM115
    config.set_main_option("script_location", str(tmp_path / "migrations"))
    config.set_main_option("sqlalchemy.url", f"sqlite:///{used}")
    config.config_file_name = str(tmp_path / "alembic.ini")
    before = schema(used)
    try:
        command.init(config, str(tmp_path / "migrations"))
        (tmp_path / "migrations" / "env.py").write_text(env)
        command.revision(config, "orders", autogenerate=True)
        command.upgrade(config, "head")
        # SQLite cannot change a column: batch mode makes the table anew, beside our triggers.
        (tmp_path / "models.py").write_text(MODELS.replace("String(20)", "String(40), index=True"))
        importlib.reload(sys.modules["models"])
        command.revision(config, "longer", autogenerate=True)
        command.upgrade(config, "head")
        written = "".join(file.read_text() for file in (tmp_path / "migrations" / "versions").glob("*.py"))
        assert "batch_alter_table('orders'" in written
        assert "ingest_queue" not in written
        assert "membox_queue" not in written
        command.downgrade(config, "base")
    finally:
        config.stdout.close()
        sys.modules.pop("models", None)
        logging.getLogger("alembic").handlers.clear()
    assert schema(used) == before
    with Queue(used) as queue:
        assert queue.check()["mended"] == []
        assert queue.counts()["pending"] == 2


@pytest.mark.parametrize("kinds", [(DropTableOp,), (DropIndexOp,), (DropTableOp, DropIndexOp)], ids=str)
def test_a_file_that_a_bad_migration_went_over_opens_again_complete(used, kinds):
    before = schema(used)
    steps = compared(used, metadata())
    dropping = [step for step in steps if isinstance(step, kinds)]
    assert len(dropping) > 10
    engine = sqlalchemy.create_engine(f"sqlite:///{used}")
    with engine.begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        # Indexes first, as a table takes its indexes with it.
        for step in sorted(dropping, key=lambda step: isinstance(step, DropTableOp)):
            operations.invoke(step)
    engine.dispose()
    with Queue(used) as queue:
        assert queue.check()["faults"] == []
        assert queue.check()["mended"]
        queue.enqueue_many([NewItem("x", group="n"), NewItem("y", group="n")])
        assert [item.content for item in queue.claim_many(9) if item.group == "n"] == ["x"]
    assert schema(used) == before


@pytest.mark.parametrize("backwards", [False, True])
def test_a_migration_that_stopped_half_way_is_mended(used, tmp_path, backwards):
    """As a migration without a transaction leaves it that fails after any one of its statements."""
    whole = schema(used)
    steps = compared(used, metadata())
    indexes = [f"INDEX {step.index_name}" for step in steps if isinstance(step, DropIndexOp)]
    tables = [f"TABLE {step.table_name}" for step in steps if isinstance(step, DropTableOp)]
    dropped = sorted(indexes + tables, reverse=backwards)
    for number in range(1, len(dropped) + 1):
        path = tmp_path / f"after{number}.db"
        source, target = sqlite3.connect(used), sqlite3.connect(path)
        source.backup(target)
        source.close()
        for what in dropped[:number]:
            target.execute(f"DROP {what.replace(' ', ' IF EXISTS ')}")
        target.commit()
        target.close()
        with Queue(path) as queue:
            assert queue.check()["faults"] == [], dropped[:number]
            rows = [item.status for item in queue.items(limit=100)]
            assert queue.counts() == {status: rows.count(status) for status in queue.counts()}
        assert schema(path) == whole, dropped[:number]


def test_django_migrates_its_own_tables_and_shows_ours_as_unmanaged(used, tmp_path):
    pytest.importorskip("django")
    before = schema(used)
    ended = subprocess.run(
        [sys.executable, PROGRAMS / "migrate_with_django.py", str(used)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert schema(used) == before
    with Queue(used) as queue:
        assert queue.check()["mended"] == []
        assert queue.counts()["pending"] == 2
