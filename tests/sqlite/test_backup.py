"""backup: a copy of the whole file at one moment, while others write."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from membox_queue import NewItem, Queue
from programs import PROGRAMS

# Stops in the middle of the copying: a signal is looked at between two of its steps.


@pytest.fixture
def half(queue, path, tmp_path, start):
    """Start a backup in another process, and return it when half of the copy is written."""
    queue.enqueue_many("x" * 1_000_000 for _ in range(40))

    def half():
        backup = start(PROGRAMS / "stop_a_backup_half_way.py", path, tmp_path / "copy.db")
        assert backup.stdout.readline() == "half\n"
        return backup

    return half


def is_whole(copy, sql):
    return sql(copy, "SELECT count(*) FROM ingest_queue") == [[40]] and sql(copy, "PRAGMA integrity_check") == [["ok"]]


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
    writer = start(PROGRAMS / "write_on.py", path)
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


def test_two_backups_to_one_name_do_not_meet_even_if_one_is_killed(half, tmp_path, sql):
    first, second = half(), half()
    assert first.communicate("\n", timeout=60)[0] == "whole\n"
    second.kill()
    second.communicate()
    assert is_whole(tmp_path / "copy.db", sql)


def test_the_second_of_two_backups_to_one_name_is_refused(half, tmp_path, sql):
    first, second = half(), half()
    assert second.communicate("\n", timeout=60)[0] == "whole\n"
    assert "copy.db: the file exists already" in first.communicate("\n", timeout=60)[0]
    assert is_whole(tmp_path / "copy.db", sql)
    assert sorted(file.name for file in tmp_path.glob("copy*")) == ["copy.db"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_copy_has_the_mode_of_the_file_whatever_the_umask(queue, path, tmp_path, mode):
    path.chmod(mode)
    for umask in (0o022, 0o077):
        before = os.umask(umask)
        try:
            queue.backup(tmp_path / f"{umask}.db")
        finally:
            os.umask(before)
        assert (tmp_path / f"{umask}.db").stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_partial_copy_can_be_read_by_those_alone_who_can_read_the_file(path, half, tmp_path):
    path.chmod(0o600)
    half()
    assert {file.stat().st_mode & 0o777 for file in tmp_path.glob("copy.db*")} == {0o600}


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_backup_beside_what_an_earlier_file_of_that_name_left_is_refused(queue, tmp_path, suffix):
    left = tmp_path / f"copy.db{suffix}"
    left.write_text("dear")
    with pytest.raises(FileExistsError, match=rf"copy\.db{suffix}: .* SQLite would .* the copy; move it away"):
        queue.backup(tmp_path / "copy.db")
    assert left.read_text() == "dear"
    assert sorted(file.name for file in tmp_path.glob("copy*")) == [left.name]


def test_the_copy_never_has_two_names(queue, path, tmp_path):
    # A process that died between the two could not open the copy: a hard link is refused.
    if not (strace := shutil.which("strace")):
        pytest.skip("strace is not installed (apt-get install strace)")
    program = "import sys; from membox_queue import Queue; Queue(sys.argv[1]).backup(sys.argv[2])"
    links = tmp_path / "links"
    command = [strace, "-f", "-qq", "-e", "trace=link,linkat", "-o", links, sys.executable, "-c", program]
    subprocess.run([*command, path, tmp_path / "copy.db"], check=True, timeout=60)
    assert links.read_text() == ""


def test_what_a_killed_backup_left_is_removed_by_a_backup_to_that_name_a_day_later(half, tmp_path):
    others = {tmp_path / "copy.db.old.partial", tmp_path / "other.db.0123456789abcdef.partial"}
    for other in others:
        other.write_text("dear")
        os.utime(other, (0, 0))

    def killed():
        before = set(tmp_path.glob("*.partial"))
        backup = half()
        backup.kill()
        backup.communicate()
        (left,) = set(tmp_path.glob("*.partial")) - before
        return left

    first, second = killed(), killed()
    assert first.exists(), "it may be another backup's that is at work"
    os.utime(first, (time.time() - 2 * 86400,) * 2)
    third = killed()
    assert set(tmp_path.glob("*.partial")) == {second, third, *others}


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
