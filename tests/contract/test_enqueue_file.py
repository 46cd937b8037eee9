"""enqueue_file: the text of a file, with what the file says about itself."""

import asyncio
import os
import time
from datetime import date
from pathlib import Path

import pytest
from membox_queue import PayloadTooLargeError


@pytest.fixture
def note(tmp_path):
    note = tmp_path / "notes" / "handoff.md"
    note.parent.mkdir()
    note.write_bytes("first line\r\nüber\0".encode())
    return note


def test_the_text_is_taken_as_it_stands_with_path_project_and_date(queue, note):
    noon = time.mktime((2026, 6, 14, 12, 0, 0, 0, 0, -1))
    os.utime(note, (noon, noon))
    item = queue.get(queue.enqueue_file(note))
    assert item.content == "first line\r\nüber\0"
    assert item.source_path == str(note.resolve())
    assert (item.project, item.doc_date) == ("notes", "2026-06-14")


def test_later_changes_of_the_file_do_not_matter(queue, note):
    qid = queue.enqueue_file(note)
    note.write_text("changed")
    assert queue.get(qid).content.startswith("first line")


def test_the_enclosing_repository_is_the_project(queue, note, tmp_path):
    repository = tmp_path / "wiki"
    (repository / ".git").mkdir(parents=True)
    note = note.rename(repository / "handoff.md")
    deeper = repository / "a" / "b" / "c.md"
    deeper.parent.mkdir(parents=True)
    deeper.write_text("x")
    assert {queue.get(queue.enqueue_file(file)).project for file in (note, deeper)} == {"wiki"}


def test_a_relative_path_and_a_link_are_resolved(queue, note, tmp_path, monkeypatch):
    (tmp_path / "link.md").symlink_to(note)
    monkeypatch.chdir(tmp_path)
    assert queue.get(queue.enqueue_file("link.md")).source_path == str(note.resolve())


def test_what_the_caller_says_comes_first(queue, note):
    said = {"project": "p", "source_path": "elsewhere.md", "priority": 9}
    item = queue.get(queue.enqueue_file(str(note), doc_date=date(2020, 1, 2), **said))
    assert {name: getattr(item, name) for name in said} == said
    assert item.doc_date == "2020-01-02"


def test_a_missing_file_is_reported_and_nothing_is_written(queue, tmp_path):
    with pytest.raises(FileNotFoundError):
        queue.enqueue_file(tmp_path / "nowhere.md")
    assert queue.pending() == 0


@pytest.fixture
def reads(monkeypatch):
    """How many bytes were read from files."""
    lengths = []
    open_file = Path.open

    class Counting:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def fileno(self):
            return self.file.fileno()

        def read(self, size=-1):
            assert size >= 0, "it would read whatever there is"
            lengths.append(len(found := self.file.read(size)))
            return found

    def counting(file, mode):
        opened = open_file(file, mode)
        return opened if file.suffix == ".py" else Counting(opened)

    monkeypatch.setattr(Path, "open", counting)
    return lengths


def test_a_file_larger_than_the_limit_is_refused_before_it_is_read(open_queue, note, reads):
    with open_queue(max_bytes=100) as queue:
        os.truncate(note, 3 << 30)
        with pytest.raises(PayloadTooLargeError, match="has 3221225472 bytes, the limit is 100"):
            queue.enqueue_file(note)
        assert (reads, queue.pending()) == ([], 0)


def test_what_tells_no_size_is_read_no_further_than_the_limit(open_queue, reads):
    with open_queue(max_bytes=100) as queue:
        with pytest.raises(PayloadTooLargeError, match="more than 100 bytes"):
            queue.enqueue_file("/dev/zero")
        assert (sum(reads), queue.pending()) == (101, 0)


def test_a_file_exactly_as_large_as_the_limit_is_taken(open_queue, note):
    with open_queue(max_bytes=100) as queue:
        note.write_text("x" * 100)
        assert queue.get(queue.enqueue_file(note)).content == "x" * 100


def test_the_limit_is_that_of_the_file_if_another_process_has_configured_one(queue, open_queue, note, reads):
    with open_queue() as other:
        other.configure(max_bytes=5)
    with pytest.raises(PayloadTooLargeError):
        queue.enqueue_file(note)
    assert reads == []


def test_a_large_file_is_refused_in_asyncio_too(open_async_queue, note, reads):
    async def main():
        async with open_async_queue(max_bytes=5) as aqueue:
            with pytest.raises(PayloadTooLargeError):
                await aqueue.enqueue_file(note)

    asyncio.run(main())
    assert reads == []


def test_a_file_that_is_not_text_is_refused_with_advice(queue, note):
    note.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"not UTF-8.*enqueue its bytes"):
        queue.enqueue_file(note)
    assert queue.pending() == 0
