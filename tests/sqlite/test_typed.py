"""Typed content as the file stores it."""

from __future__ import annotations

import json

from membox_queue import Queue
from typed_documents import NOW, Doc, Page


def test_what_is_stored_is_readable_json(path, sql):
    with Queue(path, type=Doc) as queue:
        queue.enqueue(Doc("t", NOW, pages=[Page(1)], tags=frozenset("cab")))
    stored = json.loads(sql(path, "SELECT content FROM ingest_queue")[0][0])
    assert stored["at"] == "2026-11-16T10:30:15.123456+00:00"
    assert stored["pages"] == [{"number": 1, "text": ""}]
    assert (stored["color"], stored["tags"]) == ("red", ["a", "b", "c"])
    assert "length" not in stored


def test_content_that_does_not_fit_stays_as_it_was_stored(path, sql):
    with Queue(path) as plain:
        plain.enqueue({"text": "bad 1"})
    with Queue(path, type=Page) as queue:
        assert queue.claim() is None
        assert queue.get(1).status == "failed"
    assert sql(path, "SELECT content FROM ingest_queue WHERE id = 1") == [['{"text":"bad 1"}']]
