"""The engines that the tests can run on: where a test's database is, and how it is opened."""

from membox_queue import AsyncQueue, Queue


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

    def open(self, name="ingest", **options):
        return Queue(self.address, name, **options)

    def open_async(self, name="ingest", **options):
        return AsyncQueue(self.address, name, **options)


class Sqlite(Engine):
    """A file under the test's own directory."""

    def database(self, tmp_path, name):
        return tmp_path / f"{name}.db"


ENGINES = {"sqlite": Sqlite}
