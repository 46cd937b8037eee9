"""Any argument of any public callable: documented exceptions only, no panic, no hang, no SystemError.

What is called is found by looking, so that a new verb is covered the day it comes.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import membox_queue
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from membox_queue import BY_CONTENT, GiveUp, NewItem, Queue, QueueError, Rate, Retry, RetryLater


class HostileError(Exception):
    """Raised by the user's own objects; it must come through as it is."""


class Hostile:
    """Raises wherever it is touched, but for what the test itself needs."""

    def refuse(self, *_: Any) -> Any:
        raise HostileError

    __str__ = __int__ = __index__ = __float__ = __iter__ = __len__ = __bool__ = __fspath__ = refuse
    __call__ = __getitem__ = __lt__ = __enter__ = __exit__ = refuse


EXPECTED = (QueueError, ValueError, TypeError, OverflowError, HostileError)
ALSO = {"enqueue_file": (OSError,), "wait": (TimeoutError,)}
"""One reads a file and says what the system says, one waits for what may not come."""

LEFT_OUT = {
    "work": "stays until it is stopped",
    "spawn_worker": "starts processes",
    "close": "ends the object for all others; see below",
}

WAITS = {"wait", "timeout", "busy_timeout", "linger", "grace"}
"""A long wait is no hang, so these are given only short ones, or nonsense."""

nested = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
odd = st.sampled_from(
    [
        2**63 - 1,
        -(2**63),
        2**64,
        10**400,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        "",
        "\0",
        "\ud800",
        "x" * 2000,
        b"",
        b"\xff\0",
        bytearray(b"x"),
        {1: 2},
        {"a": float("nan")},
        [[[]]] * 3,
        (),
        {1, 2},
        object(),
        Hostile(),
        Exception,
        ValueError("no"),
        GiveUp("no"),
        RetryLater(1),
        datetime.max.replace(tzinfo=UTC),
        datetime.min,
        date.max,
        timedelta.max,
        timedelta.min,
        Path("nowhere", "at", "all"),
        BY_CONTENT,
        NewItem("x"),
        Retry(),
        Rate(1, per=1),
        Queue,
        print,
        range(3),
        type,
        ...,
    ]
)
likely = st.sampled_from(
    [None, 0, 1, 2, "x", "failed", "pending", "a", 0.5, True, "* * * * *", "return", ["x"], {"a": 1}, lambda *_: None]
)
short = st.sampled_from([0, 0.0, 0.001, -1, math.nan, "1", b"1", [], timedelta(0), timedelta.min, 10**400])
anything = odd | likely | nested | st.binary(max_size=8)

VERBS = [
    name
    for name, found in inspect.getmembers(Queue)
    if not name.startswith("_") and callable(found) and name not in LEFT_OUT
]
MAKERS = [
    name
    for name in membox_queue.__all__
    if callable(getattr(membox_queue, name))
    and not name.startswith("Async")
    and name not in ("Queue", "Worker", "Handler")
]


def parameters(call: Any) -> list[inspect.Parameter]:
    found = list(inspect.signature(call).parameters.values())
    return [parameter for parameter in found if parameter.name != "self"]


@st.composite
def arguments(draw: st.DrawFn, call: Any, held: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """Something for every required parameter, and for some of the others; now and then for one that is not there."""
    try:
        wanted = parameters(call)
    except ValueError:
        return draw(st.lists(anything, max_size=3)), {}
    positional, named = [], {}
    for parameter in wanted:
        values = short if parameter.name in WAITS else anything
        if held is not None and parameter.name in ("item", "items", "id"):
            values = st.sampled_from([held, held.id, [held]]) | values
        is_required = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= draw(st.dictionaries(st.sampled_from(["lease", "rate", "retry", "colour"]), anything, max_size=2))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            positional += draw(st.lists(anything, max_size=2))
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(draw(values))
        # Without a timeout a wait for what never ends is no hang either.
        elif is_required or parameter.name == "timeout" or draw(st.integers(0, 3)) == 0:
            named[parameter.name] = draw(values)
    return positional, named


def attempt(name: str, call: Any, positional: list[Any], named: dict[str, Any]) -> None:
    """What is not expected fails the test by itself; a panic is a BaseException and no Exception."""
    with contextlib.suppress(*EXPECTED, *ALSO.get(name, ())):
        call(*positional, **named)


SHORT = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(SHORT, max_examples=1500)


def check_verb(name: str, thorough: settings) -> None:
    @thorough
    @given(st.data())
    def run(data: st.DataObject) -> None:
        with Queue(":memory:") as queue:
            queue.enqueue_many(["x", NewItem("y", group="a"), NewItem("z", key="k")])
            held = queue.claim()
            attempt(name, getattr(queue, name), *data.draw(arguments(getattr(queue, name), held)))
            assert queue.counts()["blocked"] == 0

    run()


def check_maker(name: str, thorough: settings) -> None:
    @thorough
    @given(st.data())
    def run(data: st.DataObject) -> None:
        call = getattr(membox_queue, name)
        attempt(name, call, *data.draw(arguments(call)))

    run()


@pytest.mark.parametrize("name", VERBS)
def test_any_argument_of_a_verb_is_taken_or_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_verb(name, SHORT)


@pytest.mark.parametrize("name", MAKERS)
def test_any_argument_of_a_public_name_is_taken_or_refused(name):
    check_maker(name, SHORT)


def check_open(thorough: settings) -> None:
    @thorough
    @given(st.data())
    def run(data: st.DataObject) -> None:
        positional, named = data.draw(arguments(Queue))
        named.pop("path", None)
        try:
            queue = Queue(":memory:", *positional[1:], **named)
        except EXPECTED:
            return
        queue.close()
        # Closed: whatever it is given, it says so or refuses the argument.
        name = data.draw(st.sampled_from(VERBS))
        attempt(name, getattr(queue, name), *data.draw(arguments(getattr(queue, name))))

    run()


def test_any_option_of_a_queue_is_taken_or_refused():
    check_open(SHORT)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", VERBS)
def test_many_arguments_of_a_verb_are_taken_or_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_verb(name, LONG)


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MAKERS)
def test_many_arguments_of_a_public_name_are_taken_or_refused(name):
    check_maker(name, LONG)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_many_options_of_a_queue_are_taken_or_refused():
    check_open(settings(LONG, max_examples=300))


def test_what_is_left_out_exists():
    assert all(callable(getattr(Queue, name)) for name in LEFT_OUT)
