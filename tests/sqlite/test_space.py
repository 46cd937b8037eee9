"""Space: what was removed goes back to the file system, and the log stays small."""

import sqlite3
import threading

import pytest
from membox_queue import Queue
from programs import PROGRAMS

MIB = 1024 * 1024
DOCUMENT = "x" * 10_000
# What a log that has been folded back may keep of its size.
LOG_KEPT = 16 * MIB
# What is kept free for the next documents, beside a fifth of the file.
FREE_KEPT = MIB


def log_size(path):
    log = path.with_name(path.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def fill(queue, count=1000):
    """Let so many documents come and be done: about ten megabytes."""
    queue.enqueue_many(DOCUMENT for _ in range(count))
    queue.mark_done_many(queue.claim_many(count))


@pytest.fixture
def reader(path, start):
    """Let another process hold a read transaction; says what it saw, and ends it."""

    class Reader:
        def __init__(self):
            self.process = start(PROGRAMS / "hold_reads.py", path)
            self.seen = int(self.process.stdout.readline())

        def end(self):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            assert int(self.process.stdout.readline()) == self.seen
            return int(self.process.stdout.readline())

    return Reader


@pytest.fixture
def application(path):
    """A file that the application made, with rows of its own and no vacuum by steps."""
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine');")
    connection.close()
    return path


@pytest.mark.parametrize("verb", ["prune", "purge", "tend"])
def test_a_file_we_made_shrinks_as_items_are_removed(path, clock, sql, verb):
    with Queue(path, durability="normal") as queue:
        fill(queue)
        queue.enqueue("stays")
        assert path.stat().st_size + log_size(path) > 10 * MIB
        clock.advance(1)
        if verb == "prune":
            assert queue.prune(older_than=0) == 1000
        elif verb == "purge":
            assert queue.purge("done") == 1000
        else:
            queue.configure(keep_for=0)
        queue.tend()
        assert path.stat().st_size < 2 * FREE_KEPT
        assert queue.claim().content == "stays"
    assert path.stat().st_size < 2 * FREE_KEPT
    assert sql(path, "PRAGMA integrity_check") == [["ok"]]


def test_retention_gives_space_back_beside_normal_work(path, clock, sql):
    with Queue(path, durability="normal", keep_for=60) as queue:
        fill(queue)
        clock.advance(71)
        for _ in range(50):
            queue.claim()
        pages, size = sql(path, "SELECT * FROM pragma_page_count(), pragma_page_size()")[0]
        assert pages * size < 2 * FREE_KEPT
    assert path.stat().st_size < 2 * FREE_KEPT


def test_a_part_of_the_space_is_kept_for_what_comes_next(path, clock, sql):
    with Queue(path, durability="normal") as queue:
        fill(queue, 2000)
        queue.enqueue_many(DOCUMENT for _ in range(1000))
        queue.purge("done")
        free, pages = sql(path, "SELECT * FROM pragma_freelist_count(), pragma_page_count()")[0]
        assert 256 <= free <= pages / 4
        assert queue.counts()["pending"] == 1000


def test_a_file_of_the_application_keeps_its_way_and_is_made_small_by_compact(application, sql):
    with Queue(application, durability="normal") as queue:
        fill(queue)
        queue.purge("done")
        queue.tend()
        assert application.stat().st_size > 9 * MIB
        queue.compact()
        assert application.stat().st_size < FREE_KEPT
        assert log_size(application) == 0
        assert queue.enqueue("goes on") == 1001
    assert application.stat().st_size < FREE_KEPT
    assert sql(application, "PRAGMA auto_vacuum") == [[0]]
    assert sql(application, "SELECT text FROM notes") == [["mine"]]
    assert sql(application, "PRAGMA integrity_check") == [["ok"]]


def test_compact_makes_a_file_of_ours_as_small_as_it_can_be(path, sql):
    with Queue(path, durability="normal") as queue:
        fill(queue)
        queue.purge("done")
        queue.compact()
        assert path.stat().st_size < FREE_KEPT / 2
    assert path.stat().st_size < FREE_KEPT / 2
    assert sql(path, "PRAGMA auto_vacuum") == [[2]]


def test_the_log_stays_small_under_a_steady_load(path):
    with Queue(path, durability="normal", keep_last=10) as queue:
        largest = 0
        for _ in range(1500):
            queue.enqueue(DOCUMENT)
            queue.mark_done(queue.claim())
            largest = max(largest, log_size(path))
        # More than a hundred megabytes have gone through it.
        assert largest < 3 * LOG_KEPT


def test_the_log_stays_small_beside_many_short_readers(path):
    with Queue(path, durability="normal") as queue:
        for _ in range(4000):
            queue.enqueue(DOCUMENT)
            assert queue.get(1) is not None
        assert log_size(path) < 2 * LOG_KEPT


def test_a_log_that_one_large_batch_made_long_is_cut_again(path, until):
    with Queue(path, durability="normal") as queue:
        queue.enqueue_many(DOCUMENT for _ in range(2500))
        assert log_size(path) > LOG_KEPT
        until(lambda: queue.enqueue("next") and log_size(path) <= LOG_KEPT)


def test_a_log_that_grew_beside_a_long_reader_is_cut_when_the_reader_is_gone(path, reader, until):
    with Queue(path, durability="normal") as queue:
        queue.enqueue("first")
        long_reader = reader()
        for _ in range(250):
            queue.enqueue("x" * 100_000)
        # Nothing can be taken from the log while somebody reads from before it.
        assert log_size(path) > LOG_KEPT
        assert (long_reader.seen, long_reader.end()) == (1, 251)
        # The next commits do it: the first of them may find the log being folded back.
        until(lambda: queue.enqueue("next") and log_size(path) <= LOG_KEPT)
        assert path.stat().st_size > 250 * 100_000
        assert queue.counts()["pending"] > 251


def test_a_worker_with_nothing_to_do_cuts_the_log_too(path, reader):
    with Queue(path, durability="normal") as queue:
        queue.enqueue("first")
        long_reader = reader()
        queue.enqueue_many(DOCUMENT for _ in range(2500))
        long_reader.end()
        queue.tend()
        assert log_size(path) <= LOG_KEPT


def test_compact_beside_a_reader_disturbs_nobody_and_works_once_it_is_gone(path, reader):
    with Queue(path, durability="normal", busy_timeout=0.1) as queue:
        fill(queue)
        long_reader = reader()
        queue.purge("done")
        queue.compact()
        assert (long_reader.seen, long_reader.end()) == (1000, 0)
        queue.compact()
        assert (path.stat().st_size < FREE_KEPT, log_size(path)) == (True, 0)


@pytest.mark.parametrize("where", ["this process", "another process"])
def test_compact_that_waits_for_a_reader_lets_others_write(path, reader, start, sql, until, where):
    with (
        Queue(path, durability="normal", busy_timeout=0.5) as queue,
        Queue(path, "other", busy_timeout=60) as other,
    ):
        fill(queue)
        queue.purge("done")
        # Some free pages are kept; compact leaves none.
        assert sql(path, "PRAGMA freelist_count") != [[0]]
        long_reader = reader()
        compact = other.compact if where == "this process" else start(PROGRAMS / "compact.py", path).wait
        compacting = threading.Thread(target=compact)
        compacting.start()
        until(lambda: sql(path, "PRAGMA freelist_count") == [[0]])
        for number in range(20):
            assert queue.enqueue("x") == 1001 + number
        assert compacting.is_alive(), "it waits for the reader"
        long_reader.end()
        compacting.join(30)
        assert not compacting.is_alive()
        assert path.stat().st_size < FREE_KEPT
        assert queue.counts()["pending"] == 20
