"""Opening a queue: what a file gets, and what is refused."""

import math
from datetime import timedelta

import pytest
from membox_queue import Queue, Retry


def test_opening_again_finds_what_was_put_in(open_queue):
    with open_queue() as queue:
        qid = queue.enqueue("kept")
    with open_queue() as queue:
        assert queue.get(qid).content == "kept"


def test_queues_of_other_names_share_the_file_and_nothing_else(open_queue):
    with open_queue() as ingest, open_queue("mail") as mail:
        ingest.enqueue("document")
        assert mail.claim() is None
        assert mail.pending() == 0
        assert ingest.claim().queue == "ingest"


def test_a_with_block_closes_the_queue_whatever_happens_in_it(open_queue):
    with pytest.raises(ZeroDivisionError), open_queue() as queue:
        1 / 0  # noqa: B018
    assert queue.closed


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_either_durability_keeps_what_was_enqueued(open_queue, durability):
    with open_queue(durability=durability) as queue:
        queue.enqueue("x")
    with open_queue() as queue:
        assert queue.pending() == 1


def test_times_may_be_given_as_timedelta(open_queue, clock):
    with open_queue(lease=timedelta(minutes=5), busy_timeout=timedelta(seconds=1)) as queue:
        queue.enqueue("x")
        assert queue.claim().lease_until == clock.now + timedelta(minutes=5)


def test_a_busy_timeout_without_end_is_accepted(open_queue):
    with open_queue(busy_timeout=math.inf) as queue:
        assert queue.enqueue("x") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "a\0b"},
        {"name": "x" * 256},
        {"lease": 0},
        {"lease": -1},
        {"lease": math.nan},
        {"lease": math.inf},
        {"lease": 1e300},
        {"max_retries": -1},
        {"max_retries": 2**64},
        {"durability": "none"},
        {"max_bytes": 0},
        {"max_bytes": 2**40},
        {"busy_timeout": -1},
        {"busy_timeout": math.nan},
        {"worker": ""},
        {"worker": " "},
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_and_no_file_is_made(open_queue, engine, options):
    with pytest.raises(ValueError):  # noqa: PT011
        open_queue(**options)
    assert not engine.exists()


@pytest.mark.parametrize(
    "options",
    [
        {"name": 5},
        {"lease": "60"},
        {"max_retries": 3.0},
        {"max_retries": True},
        {"retry": 3},
        {"worker": 7},
        {"path": 5},
    ],
)
def test_a_value_of_the_wrong_type_is_refused(address, options):
    with pytest.raises(TypeError):
        Queue(**{"path": address} | options)


@pytest.mark.parametrize(
    "arguments", [{"max": 0}, {"base": -1}, {"factor": 0.5}, {"cap": math.inf}, {"jitter": 1.5}, {"kind": "cubic"}]
)
def test_a_retry_policy_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(ValueError, match="Retry"):
        Retry(**arguments)
