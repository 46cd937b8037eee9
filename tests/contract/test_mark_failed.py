"""mark_failed: the error is stored, the failure counted, and the policy decides."""

from datetime import timedelta

import pytest
from membox_queue import GiveUp, Retry, RetryLater


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def failed(queue, item, error="boom", **options):
    """Fail the item and read it back."""
    assert queue.mark_failed(item, error, **options) is True
    return queue.get(item.id)


def test_without_a_policy_the_item_rests_as_failed(queue, item, clock):
    rested = failed(queue, item)
    assert (rested.status, rested.error, rested.retries, rested.finished_at) == ("failed", "boom", 1, clock.now)
    assert (rested.worker, rested.lease_until, rested.run_at) == (item.worker, None, None)
    clock.advance(10**6)
    assert queue.claim() is None


def delays(queue, clock):
    """Fail one item until it rests; the pauses in between."""
    qid = queue.enqueue("x")
    pauses = []
    while item := queue.claim():
        after = failed(queue, item)
        if after.status == "pending":
            pauses.append((after.run_at - clock.now).total_seconds())
            clock.advance(pauses[-1] - 0.001)
            assert queue.claim() is None
            clock.advance(0.001)
    assert queue.get(qid).status == "failed"
    assert queue.get(qid).retries == len(pauses) + 1
    return pauses


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        (Retry(max=5, base=30, factor=2, cap=100, jitter=0), [30, 60, 100, 100]),
        (Retry(max=4, base=timedelta(seconds=10), jitter=0, kind="linear"), [10, 20, 30]),
        (Retry(max=3, base=0.25, factor=3, jitter=0), [0.25, 0.75]),
        (Retry(max=1), []),
    ],
)
def test_with_a_policy_the_item_comes_back_by_itself_until_the_nth_failure(open_queue, clock, policy, pauses):
    with open_queue(retry=policy) as queue:
        assert delays(queue, clock) == pauses


def test_jitter_spreads_the_pause_within_its_bounds(open_queue, clock):
    with open_queue(retry=Retry(base=100, jitter=0.1)) as queue:
        queue.enqueue_many(range(50))
        pauses = {failed(queue, item).run_at - clock.now for item in queue.claim_many(50)}
    assert len(pauses) > 1
    assert timedelta(seconds=90) <= min(pauses) <= max(pauses) <= timedelta(seconds=110)


def test_the_items_own_ceiling_comes_before_the_policys_and_that_before_the_queues(open_queue, clock):
    with open_queue(max_retries=1, retry=Retry(max=2, base=1, jitter=0)) as queue:
        queue.enqueue("own", max_retries=1)
        assert failed(queue, queue.claim()).status == "failed"
        assert delays(queue, clock) == [1]


def test_retry_in_sends_it_back_whatever_the_policy_says(queue, item, clock):
    later = failed(queue, item, retry_in=timedelta(minutes=2))
    assert (later.status, later.retries, later.error) == ("pending", 1, "boom")
    assert later.run_at == clock.now + timedelta(minutes=2)
    assert (later.started_at, later.finished_at) == (None, None)
    clock.advance(120)
    assert failed(queue, queue.claim(), retry_in=0).run_at is None
    assert queue.claim().attempt == 3


def test_retry_in_does_not_go_beyond_the_ceiling(queue):
    queue.enqueue("x", max_retries=2)
    assert failed(queue, queue.claim(), retry_in=0).status == "pending"
    assert failed(queue, queue.claim(), retry_in=0).status == "failed"


def test_giving_up_is_final_whatever_the_policy_allows(open_queue):
    with open_queue(retry=Retry()) as queue:
        queue.enqueue("x")
        assert failed(queue, queue.claim(), give_up=True, retry_in=0).status == "failed"
        assert queue.retry_failed() == 0


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError


class OddError(Exception):
    def __str__(self):
        return 5


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        ("as it is: Ünï\0code", "as it is: Ünï\0code"),
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError(), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        ("half \ud800 pair", "half \\ud800 pair"),
        (ValueError("half \udfff pair"), "ValueError: half \\udfff pair"),
    ],
)
def test_the_failure_text_is_the_string_or_what_the_exception_says(queue, item, error, stored):
    assert failed(queue, item, error).error == stored


@pytest.mark.parametrize("error", [MuteError(), OddError(), "", ValueError("")])
def test_a_failure_text_is_never_missing(queue, item, error):
    stored = failed(queue, item, error).error
    assert stored
    assert isinstance(error, str) or type(error).__name__ in stored


@pytest.mark.parametrize("error", ["x" * 2**20, ValueError("ä" * 2**20), "\ud800" * 2**20])
def test_a_megabyte_of_failure_text_is_cut_with_a_mark(queue, item, error):
    stored = failed(queue, item, error).error
    assert 8000 < len(stored.encode()) <= 8192
    assert stored.endswith("[cut]")


def test_eight_kibibytes_of_failure_text_are_kept(queue, item):
    assert failed(queue, item, "x" * 8192).error == "x" * 8192


@pytest.mark.parametrize("error", [None, 5, b"bytes", ValueError])
def test_an_error_is_text_or_an_exception(queue, item, error):
    with pytest.raises(TypeError, match="error must be"):
        queue.mark_failed(item, error)
    assert queue.get(item.id).status == "processing"


@pytest.mark.parametrize("retry_in", [-1, float("nan"), float("inf"), 1e300, "5"])
def test_a_retry_time_that_is_none_is_refused_and_the_claim_stays(queue, item, retry_in):
    with pytest.raises((TypeError, ValueError), match="retry_in"):
        queue.mark_failed(item, "boom", retry_in=retry_in)
    assert not item.lost
    assert queue.get(item.id).retries == 0


@pytest.mark.parametrize("request_class", [GiveUp, lambda reason: RetryLater(5, reason=reason)])
def test_a_reason_may_be_an_exception(queue, item, request_class):
    queue.mark_failed(item, request_class(OSError("no answer")))
    assert queue.get(item.id).error == "OSError: no answer"
    assert str(request_class(OSError("no answer"))) == "no answer"
