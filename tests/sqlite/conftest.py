"""What the tests of SQLite share: stores as membox has them."""

import pytest

from sqlite.membox_store import Store


@pytest.fixture
def make_store(path):
    stores = []

    def make():
        stores.append(Store(path))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()


@pytest.fixture
def effects(sql, path, queue):
    """Make a table of the application; returns what reads what is committed there."""
    sql(path, "CREATE TABLE effects (text TEXT)")
    return lambda: [text for (text,) in sql(path, "SELECT text FROM effects")]
