"""Content that another program wrote by plain SQL."""

import json

from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=["Cs"]))


BEYOND = 2**64 + 1


LARGEST = {
    "a": [2**64 - 1, -(2**63)],
    "text": f'{BEYOND} and " {BEYOND}',
    "float": 1e30,
    "long": 0.12345678901234567890123,
}


def test_an_integer_beyond_64_bits_fails_the_item_and_its_text_is_kept(queue, path, sql):
    text = json.dumps({"a": [1, {"b": -BEYOND}]})
    sql(path, "INSERT INTO ingest_queue (content, content_type) VALUES (?, 'json')", text)
    sql(path, "INSERT INTO ingest_queue (content, headers) VALUES ('x', ?)", json.dumps({"n": BEYOND}))
    assert queue.claim() is None
    first, second = queue.items()
    assert (first.status, first.content, second.status, second.content) == ("failed", text, "failed", "x")
    assert str(-BEYOND) in first.error
    assert "headers" in second.error
    assert str(BEYOND) in second.error


def test_long_numbers_that_can_be_kept_are_delivered_whoever_wrote_them(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (content, content_type) VALUES (?, 'json')", json.dumps(LARGEST))
    sql(path, "INSERT INTO ingest_queue (content, content_type) VALUES ('1e400000000000000000000', 'json')")
    assert queue.claim().content == LARGEST
    assert queue.claim() is None


def test_a_result_with_an_integer_beyond_64_bits_is_read_exactly(queue, path, sql):
    queue.enqueue("x")
    sql(path, "UPDATE ingest_queue SET status = 'done', result = ?", json.dumps([BEYOND, {"a": -BEYOND}]))
    assert queue.get(1).result == [BEYOND, {"a": -BEYOND}]
