"""A transaction of each library whose connections are taken: committed at the end of its block, or rolled back."""

import sqlite3
from contextlib import closing, contextmanager

import pytest


@contextmanager
def of_sqlite3(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


@contextmanager
def of_sqlite3_without_begin(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()


@contextmanager
def of_apsw(path):
    apsw = pytest.importorskip("apsw")
    with closing(apsw.Connection(str(path))) as connection, connection:
        yield connection


@contextmanager
def of_sqlalchemy(path):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def of_a_session(path):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    try:
        with orm.Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def of_django(path):
    django = pytest.importorskip("django")
    backend = pytest.importorskip("django.db.backends.sqlite3.base")
    settings = pytest.importorskip("django.conf").settings
    if not settings.configured:
        settings.configure()
        django.setup()
    options = {"NAME": path, "OPTIONS": {}, "TIME_ZONE": None, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    connection = backend.DatabaseWrapper({**options, "AUTOCOMMIT": True})
    # As `transaction.atomic()` does.
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    try:
        yield connection
    except BaseException:
        connection.rollback()
        raise
    else:
        connection.commit()
    finally:
        connection.close()


LIBRARIES = [of_sqlite3, of_sqlite3_without_begin, of_apsw, of_sqlalchemy, of_a_session, of_django]


def write(connection, text):
    """Write into the table `effects` with whatever the connection offers."""
    statement = f"INSERT INTO effects VALUES ('{text}')"
    if hasattr(connection, "ensure_connection"):
        connection.connection.execute(statement)
    elif hasattr(connection, "exec_driver_sql"):
        connection.exec_driver_sql(statement)
    elif hasattr(connection, "get_bind"):
        connection.connection().exec_driver_sql(statement)
    else:
        connection.execute(statement)
