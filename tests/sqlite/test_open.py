"""What a new file gets, relative paths, and what is not a path."""

import os
from pathlib import Path

import pytest
from membox_queue import Queue

COLUMNS = """
id content project source_path doc_date status retries error enqueued_at started_at finished_at queue content_type
priority run_at attempt claim_token lease_until worker max_retries group_key dedup_key headers result
"""


def test_a_new_file_gets_the_public_columns(path, sql):
    Queue(path).close()
    columns = {name for (name,) in sql(path, "SELECT name FROM pragma_table_info('ingest_queue')")}
    assert columns >= set(COLUMNS.split())


def test_a_new_file_is_in_wal_mode_and_its_user_version_is_left_to_the_application(path, sql):
    Queue(path).close()
    assert sql(path, "PRAGMA journal_mode") == [["wal"]]
    assert sql(path, "PRAGMA user_version") == [[0]]


def test_a_queue_says_its_name_its_path_and_whether_it_is_open(path):
    queue = Queue(path, "mail")
    assert (queue.name, queue.path, queue.closed) == ("mail", path, False)
    assert "'mail'" in repr(queue)
    assert str(path) in repr(queue)
    queue.close()
    assert queue.closed
    assert "closed" in repr(queue)


def test_a_relative_path_keeps_its_meaning_when_the_directory_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Queue("memory.db") as queue:
        os.mkdir("elsewhere")
        monkeypatch.chdir("elsewhere")
        queue.enqueue("x")
        assert queue.pending() == 1
        assert queue.path == tmp_path / "memory.db"
    assert not Path("memory.db").exists()


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("sqlite:///memory.db", "is a URL; pass the path of a file"),
        ("~/no/such/memory.db", r"~ is not expanded; pass Path\(\"~/no/such/memory.db\"\)\.expanduser\(\)"),
    ],
)
def test_what_is_no_path_is_told_apart_from_a_missing_directory(given, advice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=advice):
        Queue(given)
    assert list(tmp_path.iterdir()) == []
