"""Errors: one family, by name, that pickles and says what to do."""

import pickle

import pytest
from membox_queue import (
    CorruptDatabaseError,
    DiskFullError,
    DuplicateItemError,
    GiveUp,
    NotADatabaseError,
    PayloadTooLargeError,
    QueueBusyError,
    QueueClosedError,
    QueueError,
    QueueFullError,
    ReadOnlyError,
    Retry,
    RetryLater,
    SchemaVersionError,
    SettingsConflictError,
    StaleClaimError,
    StorageError,
)

FILE_ERRORS = [DiskFullError, ReadOnlyError, CorruptDatabaseError, NotADatabaseError]
ERRORS = [
    QueueBusyError,
    QueueClosedError,
    QueueFullError,
    StaleClaimError,
    PayloadTooLargeError,
    SchemaVersionError,
    SettingsConflictError,
    StorageError,
    *FILE_ERRORS,
]


def test_every_error_is_a_queue_error_and_those_of_the_file_are_storage_errors():
    assert all(issubclass(error, QueueError) for error in [*ERRORS, DuplicateItemError])
    assert all(issubclass(error, StorageError) for error in FILE_ERRORS)
    assert not issubclass(RetryLater, QueueError)
    assert not issubclass(GiveUp, QueueError)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_pickles(kind):
    error = pickle.loads(pickle.dumps(kind("what happened")))
    assert type(error) is kind
    assert str(error) == "what happened"


def test_what_errors_and_requests_carry_survives_pickling():
    error = pickle.loads(pickle.dumps(DuplicateItemError("already there", 7)))
    assert (str(error), error.id) == ("already there", 7)
    later = pickle.loads(pickle.dumps(RetryLater(5, count=False, reason="busy")))
    assert (later.seconds, later.count, later.reason) == (5, False, "busy")
    assert pickle.loads(pickle.dumps(GiveUp("why"))).reason == "why"
    policy = Retry(max=2, base=7, factor=3, cap=50, jitter=0.5, kind="linear")
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_closed_queue_says_to_open_a_new_one(queue):
    queue.close()
    with pytest.raises(QueueClosedError, match="open a new Queue"):
        queue.claim()


def test_too_much_content_says_how_much_is_allowed_and_what_to_do(open_queue):
    with open_queue(max_bytes=10) as queue, pytest.raises(PayloadTooLargeError, match=r"11 bytes.*10.*max_bytes"):
        queue.enqueue("x" * 11)
