"""Content: what enqueue was given comes back equal and of the same type, or is refused and nothing is written."""

import enum
import math
from collections import OrderedDict

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from membox_queue import NewItem, PayloadTooLargeError

text = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | text
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20)
contents = values | text | st.binary()

one_queue = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)


@one_queue
@given(contents)
@example("")
@example("\0")
@example("a\0b\x7f\x80\uffff\U0010ffff\r\n")
@example(b"")
@example(bytes(range(256)))
@example("null")
@example("{}")
@example(None)
@example(-0.0)
@example([5e-324, 1.7976931348623157e308, 1e16, 9007199254740993, 2**64 - 1, -(2**63)])
@example({"b": 1, "a": [], "": {}})
def test_content_comes_back_equal_and_of_the_same_type(queue, content):
    qid = queue.enqueue(content)
    item = queue.claim()
    assert item.id == qid
    # The repr also tells 1 from 1.0 and True, -0.0 from 0.0, and one order of keys from another.
    assert repr(item.content) == repr(content)
    assert repr(queue.get(qid).content) == repr(content)
    queue.delete(qid)


@settings(one_queue, max_examples=50)
@given(values, st.dictionaries(text, values, max_size=3))
def test_results_and_headers_come_back_the_same_way(queue, result, headers):
    qid = queue.enqueue("x", headers=headers)
    item = queue.claim()
    queue.mark_done(item, result=result)
    assert repr(item.headers) == repr(headers)
    assert repr(queue.get(qid).result) == repr(result)


@one_queue
@given(text, text, text)
def test_texts_about_an_item_come_back_unchanged(queue, project, source_path, doc_date):
    item = queue.get(queue.enqueue("x", project=project, source_path=source_path, doc_date=doc_date))
    assert (item.project, item.source_path, item.doc_date) == (project, source_path, doc_date)


def test_a_tuple_comes_back_as_a_list(queue):
    queue.enqueue((1, ("a", ())))
    assert queue.claim().content == [1, ["a", []]]


def test_a_large_document_comes_back_whole(queue):
    document = "0123456789äöü\0" * 500_000
    queue.enqueue(document)
    assert queue.claim().content == document


def test_a_hundred_levels_of_nesting_come_back(queue):
    value = []
    for _ in range(99):
        value = [value]
    queue.enqueue(value)
    assert queue.claim().content == value


class Text(str):
    pass


class Colour(enum.IntEnum):
    RED = 1


def bottomless():
    value = {}
    for _ in range(100_000):
        value = {"in": value}
    return value


def cycle():
    value = [1]
    value.append({"again": value})
    return value


REFUSED = {
    "NaN": (math.nan, ValueError, "content is NaN"),
    "infinity": ([1, math.inf], ValueError, r"content\[1\] is inf"),
    "negative infinity": ({"a": -math.inf}, ValueError, r'content\["a"\] is -inf'),
    "nested bytes": ({"a": [b"x"]}, TypeError, r'content\["a"\]\[0\] is a bytes'),
    "an int as key": ({"a": {1: 2}}, TypeError, r'content\["a"\] has a key of type int'),
    "None as key": ({None: 2}, TypeError, "key of type NoneType"),
    "an int above 64 bits": ([2**64], ValueError, r"content\[0\] is an integer beyond 64 bits"),
    "an int below 64 bits": (-(2**63) - 1, ValueError, "beyond 64 bits"),
    "a lone surrogate": ("a\ud800", ValueError, "content contains a lone surrogate"),
    "a nested surrogate": (["\udfff"], ValueError, r"content\[0\] contains a lone surrogate"),
    "a surrogate in a key": ({"\ud800": 1}, ValueError, "a key of content contains a lone surrogate"),
    "a cycle": (cycle(), ValueError, "contains itself"),
    "bottomless nesting": (bottomless(), ValueError, "nested more than"),
    "a set": ({1}, TypeError, "content is a set"),
    "an object": ({"a": object()}, TypeError, r'content\["a"\] is an object'),
    "a bytearray": (bytearray(b"x"), TypeError, "content is a bytearray"),
    "a str subclass": (Text("x"), TypeError, "would not come back as the same type"),
    "an enum": ([Colour.RED], TypeError, r"content\[0\] is a Colour"),
    "a dict subclass": (OrderedDict(a=1), TypeError, "content is an OrderedDict"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_come_back_equal_is_refused_by_place_and_nothing_is_written(queue, case):
    content, error, message = REFUSED[case]
    for enqueue in (queue.enqueue, lambda content: queue.enqueue_many(["good", NewItem(content)])):
        with pytest.raises(error, match=message):
            enqueue(content)
    assert queue.items() == []


@pytest.mark.parametrize(
    ("headers", "error"),
    [([], TypeError), ("x", TypeError), ({1: 2}, TypeError), ({"a": math.nan}, ValueError), ({"a": b"x"}, TypeError)],
)
def test_headers_are_a_dict_of_json_values(queue, headers, error):
    with pytest.raises(error, match="headers"):
        queue.enqueue("x", headers=headers)
    assert queue.items() == []


def test_a_small_value_that_stands_for_an_endless_text_is_refused_at_the_limit(open_queue):
    value = []
    for _ in range(60):
        value = [value, value]
    with open_queue(max_bytes=1000) as queue:
        with pytest.raises(PayloadTooLargeError):
            queue.enqueue(value)
        assert queue.pending() == 0
