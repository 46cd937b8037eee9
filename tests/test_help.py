"""`help()`, `inspect.signature` and `dir()` show what the package offers: every name and member, with its words."""

import dataclasses
import inspect

import membox_queue
import pytest
from membox_queue import AsyncItem, AsyncQueue, Attempt, Handler, Item, Queue, QueueError, Schedule, Worker, WorkerInfo
from membox_queue._native import Lock

PUBLIC = [getattr(membox_queue, name) for name in membox_queue.__all__]
CLASSES = [*filter(inspect.isclass, PUBLIC), Lock]
MADE_BY_OTHERS = {Attempt, Item, Lock, Schedule, WorkerInfo}
"""Native classes that are not called by users, and have no signature."""
PASSED_ON = {"arguments", "named"}
"""The arguments of a registered function, which its own signature shows."""


def members(kind):
    """What a class offers by name, except what Python's own exceptions have."""
    return [name for name in dir(kind) if not name.startswith("_") and name not in {*dir(Exception), *dir(OSError)}]


@pytest.mark.parametrize("name", membox_queue.__all__)
def test_every_public_name_has_words(name):
    assert inspect.getdoc(getattr(membox_queue, name))


@pytest.mark.parametrize("kind", CLASSES)
def test_every_public_member_has_words(kind):
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    if issubclass(kind, QueueError):
        fields |= inspect.get_annotations(kind).keys()
    without = [
        name
        for name in members(kind)
        if not (f"`{name}`" in kind.__doc__ if name in fields else inspect.getdoc(getattr(kind, name)))
    ]
    assert without == []


@pytest.mark.parametrize("kind", CLASSES)
def test_every_argument_is_shown_by_its_name(kind):
    calls = [member for name in members(kind) if callable(member := getattr(kind, name))]
    if kind not in MADE_BY_OTHERS and not issubclass(kind, QueueError):
        calls.append(kind)
    hidden = [
        f"{call.__qualname__}({parameter})"
        for call in calls
        for parameter in inspect.signature(call).parameters.values()
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) and parameter.name not in PASSED_ON
    ]
    assert hidden == []


def test_the_words_are_those_of_the_stub():
    assert Queue.claim.__doc__.startswith("Claim the next item: highest priority first")
    assert AsyncQueue.cancel.__doc__ == Queue.cancel.__doc__
    assert "\n\nThe past means now." in Queue.run_later.__doc__
    assert Item.retries.__doc__ == AsyncItem.retries.__doc__ == "Failures and lost leases so far."


@pytest.mark.parametrize(
    ("call", "source", "differs"),
    [
        (AsyncQueue.enqueue, Queue.enqueue, set()),
        (AsyncQueue.drain, Queue.drain, {"cancel_running"}),
        (AsyncQueue.configure, Queue.configure, set()),
        (AsyncQueue, Queue, set()),
        (Handler.options, Queue.enqueue, {"content"}),
        (Queue.worker, Queue.work, {"handler", "batch"}),
    ],
)
def test_what_passes_options_on_shows_them_as_they_are_where_they_go(call, source, differs):
    shown, there = (
        {name: each.default for name, each in inspect.signature(function).parameters.items()}
        for function in (call, source)
    )
    assert shown.keys() ^ there.keys() == differs
    assert all(default == there.get(name, default) for name, default in shown.items())


def test_the_signature_of_a_bound_method_and_of_a_worker_are_whole(queue):
    assert "self" not in inspect.signature(queue.enqueue_file).parameters
    assert inspect.signature(queue.enqueue_file).parameters["on_duplicate"].default == "return"
    assert inspect.signature(Worker).parameters["grace"].default == 30.0


def test_the_package_lists_its_public_names_only():
    assert dir(membox_queue) == sorted(membox_queue.__all__)
