"""Files: what may be opened, and what is never written to."""

import os
import subprocess

import pytest
from membox_queue import (
    CorruptDatabaseError,
    DrainReport,
    NewItem,
    NotADatabaseError,
    PayloadTooLargeError,
    Queue,
    ReadOnlyError,
    StorageError,
)

NO_DATABASES = {
    "a byte": b"x",
    "a line": b"hello\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50,
    "zeros": bytes(8192),
    "a good beginning": b"SQLite format 3\0" + b"\xff" * 8192,
    "nothing but a good beginning": b"SQLite format 3\0",
}


@pytest.mark.parametrize("case", NO_DATABASES)
def test_a_file_that_is_not_a_database_is_never_written_to(path, case):
    path.write_bytes(NO_DATABASES[case])
    with pytest.raises(NotADatabaseError, match=path.name):
        Queue(path)
    assert path.read_bytes() == NO_DATABASES[case]
    assert os.listdir(path.parent) == [path.name]


def test_an_empty_file_becomes_a_queue(path):
    path.touch()
    with Queue(path) as queue:
        assert queue.enqueue("x") == 1


def test_an_empty_file_whose_log_is_not_is_refused_and_the_log_kept(path, tmp_path):
    with Queue(path) as queue:
        queue.enqueue("acknowledged")
        log = path.with_name(path.name + "-wal").read_bytes()
    copy = tmp_path / "copy.db"
    copy.touch()
    copy.with_name("copy.db-wal").write_bytes(log)
    with pytest.raises(CorruptDatabaseError, match=r"empty.*-wal"):
        Queue(copy)
    assert copy.with_name("copy.db-wal").read_bytes() == log
    assert copy.read_bytes() == b""


def test_a_missing_file_whose_log_is_there_is_refused_and_the_log_kept(path, tmp_path):
    with Queue(path) as queue:
        queue.enqueue("acknowledged")
        log = path.with_name(path.name + "-wal").read_bytes()
    left = tmp_path / "copy.db-wal"
    left.write_bytes(log)
    with pytest.raises(
        StorageError, match=r"copy\.db: the file is missing, but its log.*Put it back.*move the log away"
    ):
        Queue(tmp_path / "copy.db")
    assert left.read_bytes() == log
    assert not (tmp_path / "copy.db").exists()
    left.rename(tmp_path / "kept")
    with Queue(tmp_path / "copy.db") as queue:
        assert queue.enqueue("x") == 1


def test_a_file_that_was_moved_from_under_an_open_queue_keeps_what_is_in_its_log(path, tmp_path, sql, start):
    with Queue(path) as queue:
        queue.enqueue_many(["a", "b"])
        path.rename(tmp_path / "moved.db")
        program = "import sys; from membox_queue import Queue; Queue(sys.argv[1])"
        other = start(program, path, stderr=subprocess.PIPE)
        assert "Put it back beside its log" in other.communicate(timeout=30)[1]
        (tmp_path / "moved.db").rename(path)
        assert queue.enqueue("c") == 3
    with Queue(path) as queue:
        assert [item.content for item in queue.items()] == ["a", "b", "c"]


def test_an_empty_log_does_not_keep_a_new_file_from_being_made(path):
    path.with_name(path.name + "-wal").touch()
    with Queue(path) as queue:
        assert queue.enqueue("x") == 1


@pytest.fixture
def pages(path):
    """The bytes of a closed file with many items; its first page holds the schema."""
    with Queue(path) as queue:
        queue.enqueue_many(["x" * 1000] * 200)
    return path.read_bytes()


@pytest.mark.parametrize("damage", ["schema", "tables", "truncated"])
def test_a_damaged_file_is_refused_and_left_as_it_is(path, pages, damage):
    path.write_bytes(
        {
            "schema": pages[:100] + b"\xff" * 3996 + pages[4096:],
            "tables": pages[:4096] + b"\xa5" * (len(pages) - 4096),
            "truncated": pages[: 4096 * 20],
        }[damage]
    )
    before = path.read_bytes()
    with pytest.raises(CorruptDatabaseError, match=r"memory\.db.*restore a backup"):
        Queue(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_damage_found_later_is_said_and_not_made_worse(path, pages):
    path.write_bytes(pages[: 4096 * 60] + b"\xa5" * (len(pages) - 4096 * 60))
    before = path.read_bytes()
    with Queue(path) as queue, pytest.raises(CorruptDatabaseError):
        queue.items(limit=200)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("directory", [0o555, 0o755])
def test_a_file_without_permission_to_write_is_refused(path, directory):
    Queue(path).close()
    path.chmod(0o444)
    path.parent.chmod(directory)
    try:
        with pytest.raises(ReadOnlyError):
            Queue(path)
        assert os.listdir(path.parent) == [path.name]
    finally:
        path.parent.chmod(0o755)


def test_a_missing_directory_is_said_and_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first") as raised:
        Queue(tmp_path / "nowhere" / "memory.db")
    assert isinstance(raised.value, StorageError)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["file:memory.db", "FILE:memory.db", "file:memory.db?nolock=1", "file::memory:"])
def test_a_uri_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="plain path"):
        Queue(name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a?mode=ro&cache=shared#x%20.db", "ü ß\n'\".db", os.fsdecode(b"\xff.db")])
def test_any_name_of_a_file_is_only_a_name(tmp_path, name):
    with Queue(tmp_path / name) as queue:
        queue.enqueue("x")
        assert queue.path == tmp_path / name
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_names_of_files_beside_a_database_are_refused(tmp_path, suffix):
    with pytest.raises(ValueError, match="choose another"):
        Queue(tmp_path / f"a{suffix}")
    assert os.listdir(tmp_path) == []


def test_a_directory_an_empty_path_and_a_nul_are_refused(tmp_path):
    for path in (tmp_path, "", "a\0b"):
        with pytest.raises(ValueError, match=r"directory|empty|NUL"):
            Queue(path)
    assert os.listdir(tmp_path) == []


def test_a_path_may_be_any_path_object(path):
    class Named:
        def __fspath__(self):
            return str(path)

    with Queue(Named()) as queue:
        queue.enqueue("x")
        assert queue.path == path
    assert path.exists()


@pytest.mark.parametrize("made_first", [True, False])
def test_a_link_to_a_file_is_the_same_queue(tmp_path, path, made_first):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    if made_first:
        Queue(path).close()
    with Queue(link) as through_link, Queue(path) as direct:
        direct.enqueue("x")
        item = through_link.claim()
        assert direct.claim() is None
        assert direct.mark_done(item)
        assert through_link.path == path
    assert sorted(os.listdir(tmp_path)) == ["link.db", "memory.db"]


def test_a_file_that_was_replaced_is_opened_anew(path):
    with Queue(path) as old:
        old.enqueue("old")
        for file in path.parent.iterdir():
            file.unlink()
        with Queue(path) as new:
            assert new.claim() is None
            assert new.enqueue("new") == 1
            with pytest.raises(StorageError, match="not acknowledged"):
                old.enqueue("lost")


def test_a_queue_in_memory_is_private_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Queue(":memory:") as queue, Queue(":memory:") as other:
        queue.enqueue("x")
        assert other.claim() is None
        assert queue.drain(lambda item: item.content) == DrainReport(done=1)
        assert queue.get(1).result == "x"
        assert queue.path is None
    assert os.listdir(tmp_path) == []


FITTING = ["x" * 10, "ä" * 5, b"x" * 10, [10000000], {"a": "bb"}]
TOO_LARGE = ["x" * 11, "ä" * 6, b"x" * 11, [100000000], {"a": "bbbb"}]


def test_content_is_limited_by_its_size_in_bytes(path):
    with Queue(path, max_bytes=10) as queue:
        for content in FITTING:
            queue.enqueue(content)
        for content in TOO_LARGE:
            with pytest.raises(PayloadTooLargeError):
                queue.enqueue(content)
            with pytest.raises(PayloadTooLargeError):
                queue.enqueue_many(["x", NewItem(content)])
        with pytest.raises(PayloadTooLargeError):
            queue.enqueue("x", headers={"trace": "0123456789"})
        assert [item.content for item in queue.items()] == FITTING


def test_the_limit_is_64_mebibytes_unless_told(queue):
    with pytest.raises(PayloadTooLargeError, match=str(64 * 2**20)):
        queue.enqueue("x" * (64 * 2**20 + 1))
    assert queue.pending() == 0
