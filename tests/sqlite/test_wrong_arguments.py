"""Items of a file, presented to a queue in memory."""

import pytest
from membox_queue import Queue

RECORDING = {
    "mark_done": lambda queue, item: queue.mark_done(item),
    "mark_failed": lambda queue, item: queue.mark_failed(item, "x"),
    "release": lambda queue, item: queue.release(item),
    "extend": lambda queue, item: queue.extend(item, 60),
}


@pytest.mark.parametrize("verb", RECORDING)
def test_an_item_of_a_file_is_refused_by_a_queue_in_memory(queue, verb):
    queue.enqueue("x")
    held = queue.claim()
    with Queue(":memory:") as private, pytest.raises(ValueError, match="another queue"):
        RECORDING[verb](private, held)
    assert RECORDING[verb](queue, held)
