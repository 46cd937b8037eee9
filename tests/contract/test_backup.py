"""backup: a copy of the whole file at one moment, while others write."""

import pytest
from membox_queue import NewItem, Queue

WRITE_ON = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("CREATE TABLE pairs (a INTEGER, b INTEGER)")
print("writing", flush=True)
number = 0
while True:
    number += 1
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO pairs VALUES (?, 0)", (number,))
    connection.execute("UPDATE pairs SET b = a WHERE a = ?", (number,))
    connection.execute("COMMIT")
"""


def test_the_copy_opens_as_a_queue_and_has_everything(queue, tmp_path, sql, path):
    sql(path, "CREATE TABLE notes (text TEXT)")
    sql(path, "INSERT INTO notes VALUES ('the application''s own')")
    queue.enqueue_many(["a", NewItem({"b": 1}, group="g", key="k"), NewItem("c", delay=600)])
    queue.mark_done(queue.claim(), result=7)
    queue.configure(max_retries=9)
    copy = tmp_path / "copy.db"
    queue.backup(copy)
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db"]
    with Queue(copy) as restored:
        assert restored.counts() == queue.counts()
        assert [item.content for item in restored.items()] == ["a", {"b": 1}, "c"]
        assert restored.get(1).result == 7
        assert restored.options["max_retries"] == 9
        assert restored.check()["faults"] == []
        assert restored.enqueue("next") == 4
    assert sql(copy, "SELECT text FROM notes") == [["the application's own"]]
    assert queue.counts()["pending"] == 2, "the copy is a file of its own"


def test_a_copied_claim_has_nobody_behind_it_and_comes_back_in_the_copy(queue, tmp_path):
    queue.enqueue("x")
    held = queue.claim()
    queue.backup(tmp_path / "copy.db")
    with Queue(tmp_path / "copy.db") as restored:
        assert restored.claim().attempt == 2
    assert queue.mark_done(held)


def test_the_copy_is_of_one_moment_while_another_process_writes(queue, path, tmp_path, start, sql):
    # More than is copied at a stretch.
    queue.enqueue_many("x" * 10_000 for _ in range(1000))
    writer = start(WRITE_ON, path)
    assert writer.stdout.readline() == "writing\n"
    for number in range(3):
        queue.backup(tmp_path / f"{number}.db")
    assert writer.poll() is None
    counts = [sql(tmp_path / f"{number}.db", "SELECT count(*), sum(a = b) FROM pairs")[0] for number in range(3)]
    assert all(rows == (whole or 0) for rows, whole in counts), counts
    assert sql(tmp_path / "2.db", "PRAGMA integrity_check") == [["ok"]]


def test_no_file_is_written_over(queue, tmp_path):
    target = tmp_path / "dear.db"
    target.write_text("dear")
    with pytest.raises(FileExistsError, match=r"dear\.db: the file exists already"):
        queue.backup(target)
    assert target.read_text() == "dear"
    assert not list(tmp_path.glob("*.partial*"))


def test_nor_is_the_queues_own(queue, path):
    with pytest.raises(FileExistsError):
        queue.backup(path)


def test_what_an_interrupted_backup_left_is_replaced(queue, tmp_path):
    (tmp_path / "copy.db.partial").write_text("half")
    queue.backup(tmp_path / "copy.db")
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db"]


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("missing/copy.db", FileNotFoundError, "the directory does not exist"),
        (":memory:", ValueError, "a backup is a file"),
        ("copy.db-wal", ValueError, "choose another"),
        ("", ValueError, "empty"),
    ],
)
def test_a_place_that_cannot_be_one_is_refused(queue, tmp_path, monkeypatch, name, error, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=says):
        queue.backup(name)


def test_a_queue_in_memory_can_be_kept(tmp_path):
    with Queue(":memory:") as queue:
        queue.enqueue("x")
        queue.backup(tmp_path / "kept.db")
        assert queue.enqueue("y") == 2
    with Queue(tmp_path / "kept.db") as kept:
        assert kept.claim().content == "x"
