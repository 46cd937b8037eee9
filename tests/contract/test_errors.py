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


def raised(kind, call, *arguments, **options):
    """Return the error that a call raises, and its pickled copy."""
    with pytest.raises(kind) as error:
        call(*arguments, **options)
    return error.value, pickle.loads(pickle.dumps(error.value))


def test_a_full_queue_tells_its_limit(open_queue):
    with open_queue("mail", max_pending=2) as mail:
        mail.enqueue_many(["a", "b"])
        for error in raised(QueueFullError, mail.enqueue, "c"):
            assert (error.queue, error.limit, error.pending) == ("mail", 2, 3)
        for error in raised(QueueFullError, mail.enqueue_many, ["c"] * 3):
            assert (error.queue, error.limit, error.pending) == ("mail", 2, None)


def test_a_duplicate_tells_its_key_and_id(queue):
    qid = queue.enqueue("x", key="k")
    for error in raised(DuplicateItemError, queue.enqueue, "x", key="k", on_duplicate="raise"):
        assert (error.id, error.key) == (qid, "k")


def test_what_is_too_large_tells_its_size_and_the_limit(open_queue, tmp_path):
    file = tmp_path / "large.txt"
    file.write_text("x" * 11, encoding="utf-8")
    with open_queue(max_bytes=10) as queue:
        for call, content in ((queue.enqueue, "x" * 11), (queue.enqueue_file, file)):
            for error in raised(PayloadTooLargeError, call, content):
                assert (error.size, error.limit) == (11, 10)
        for error in raised(PayloadTooLargeError, queue.enqueue_many, ["x", "x" * 12]):
            assert (error.size, error.limit) == (12, 10)


def test_a_stale_claim_tells_its_item(open_queue):
    with open_queue("mail") as mail:
        mail.enqueue("x")
        item = mail.claim()
        mail.delete(1)
        for error in (*raised(StaleClaimError, item.check), *raised(StaleClaimError, item.__exit__, None, None, None)):
            assert (error.id, error.queue) == (1, "mail")
        mail.enqueue("y")
        item = mail.claim()
        mail.mark_done(item)
        for error in raised(StaleClaimError, item.__enter__):
            assert (error.id, error.queue) == (2, "mail")
        mail.enqueue("z")
        item = mail.claim()
        mail.cancel(3)
        for error in raised(StaleClaimError, item.check):
            assert (error.id, error.queue) == (3, "mail")


@pytest.mark.parametrize("kind", ERRORS)
def test_what_is_not_known_is_none(kind):
    names = {name for parent in kind.__mro__ for name in vars(parent).get("__annotations__", {})}
    assert [getattr(kind("text"), name) for name in names] == [None] * len(names)
