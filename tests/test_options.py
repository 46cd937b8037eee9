"""The options that are passed on by name are those of the verbs."""

import inspect

import pytest
from membox_queue import Queue, _native
from membox_queue.options import DrainOptions, EnqueueOptions, QueueOptions, WorkOptions


@pytest.mark.parametrize(
    ("options", "verb", "others"),
    [
        (EnqueueOptions, Queue.enqueue, {"self", "content"}),
        (QueueOptions, _native.Queue, {"path", "name"}),
        (DrainOptions, Queue.drain, {"self", "handler", "batch"}),
        (WorkOptions, Queue.work, {"self", "handler", "batch"}),
    ],
)
def test_the_options_of_a_verb_are_all_there_and_no_others(options, verb, others):
    assert set(inspect.get_annotations(options)) | options.__optional_keys__ == (
        set(inspect.signature(verb).parameters) - others
    )
