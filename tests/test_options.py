"""The options that are passed on by name are those of the verbs."""

import inspect

import pytest
from membox_queue import Queue, _native
from membox_queue.options import DrainOptions, EnqueueOptions, QueueOptions, QueueSettings, WorkOptions


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


def test_the_settings_are_what_configure_stores(queue):
    assert QueueOptions.__optional_keys__ - QueueSettings.__optional_keys__ == {"durability", "busy_timeout", "worker"}
    queue.configure(**dict.fromkeys(QueueSettings.__optional_keys__))
    with pytest.raises(TypeError) as refused:
        queue.configure(leese=30)
    assert all(name in str(refused.value) for name in QueueSettings.__optional_keys__)
