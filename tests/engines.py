"""The engines that the tests can run on: where a test's database is, and how it is opened."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from membox_queue import AsyncQueue, Queue
from programs import PROGRAMS


class Engine:
    """One test's database on one engine.

    `address` is what `Queue(…)` takes. A program in another process gets `str(address)` as an argument and opens the
    same database with `Queue(sys.argv[1])`.
    """

    def __init__(self, tmp_path):
        self.address = self.database(tmp_path, "memory")
        self.other_address = self.database(tmp_path, "other")

    def database(self, tmp_path, name):
        """Return the address of a database that does not exist yet."""
        raise NotImplementedError

    def exists(self):
        """Return whether the database has been created."""
        raise NotImplementedError

    def rows(self, columns="*"):
        """Return the rows of the queue's table, as another process reads them."""
        raise NotImplementedError

    def worker_log(self):
        """Return the file that a spawned worker writes to."""
        raise NotImplementedError

    def connect(self):
        """Return a connection of the application to the database, with a table of its own."""
        raise NotImplementedError

    def write(self, connection, text):
        """Let the application write something into its own table."""
        raise NotImplementedError

    def written(self):
        """Return what the application has written and committed."""
        raise NotImplementedError

    def open(self, name="ingest", **options):
        return Queue(self.address, name, **options)

    def open_async(self, name="ingest", **options):
        return AsyncQueue(self.address, name, **options)


class Sqlite(Engine):
    """A file under the test's own directory."""

    def database(self, tmp_path, name):
        return tmp_path / f"{name}.db"

    def exists(self):
        return self.address.exists()

    def rows(self, columns="*"):
        return run_sql(self.address, f"SELECT {columns} FROM ingest_queue ORDER BY id")

    def worker_log(self):
        return Path(f"{self.address}.worker.log")

    def connect(self):
        connection = sqlite3.connect(self.address, check_same_thread=False)
        connection.execute("CREATE TABLE IF NOT EXISTS effects (id INTEGER PRIMARY KEY, text TEXT)")
        return connection

    def write(self, connection, text):
        connection.execute("INSERT INTO effects (text) VALUES (?)", [text])

    def written(self):
        return [text for (text,) in run_sql(self.address, "SELECT text FROM effects ORDER BY id")]


def run_sql(path, statement, *params):
    """Run one statement in another process and return its rows; this process may have the file open."""
    command = [sys.executable, "-I", "-S", PROGRAMS / "run_sql.py", path, statement, json.dumps(params)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


ENGINES = {"sqlite": Sqlite}
