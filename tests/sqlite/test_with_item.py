"""A failure that the file refuses to record."""

import os

import pytest
from membox_queue import Queue


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def left_by(item, error):
    """What leaves a block that raises; pytest.raises would ask for its attributes."""
    try:
        with item:
            raise error
    except BaseException as raised:
        return type(raised)


def test_an_exception_whose_attributes_raise_is_a_failure_and_goes_on_its_way(path, sql):
    def refuse(self, *_):
        raise LookupError

    attributes = dict.fromkeys(["__class__", "__cause__", "__traceback__", "__notes__"], property(refuse))
    hostile = type("Hostile", (Exception,), attributes | dict.fromkeys(["__str__", "__repr__", "add_note"], refuse))
    with Queue(path) as queue:
        queue.enqueue_many(["x", "y"])
        assert left_by(queue.claim(), hostile) is hostile
        assert (queue.get(1).status, queue.get(1).retries) == ("failed", 1)
        refuse_failures = "BEFORE UPDATE ON ingest_queue WHEN new.status = 'failed' BEGIN SELECT raise(ABORT, ''); END"
        sql(path, f"CREATE TRIGGER refuse_failures {refuse_failures}")
        # That it could not be recorded does not replace it either.
        assert left_by(queue.claim(), hostile) is hostile


def test_after_the_block_nothing_holds_the_file_any_more(queue, item, address):
    with item:
        pass
    queue.close()
    assert os.listdir(address.parent) == [address.name]
