"""set_progress: how far the work on an item is, for others to read."""

import pytest
from membox_queue import RetryLater
from programs import PROGRAMS


@pytest.fixture
def item(queue):
    queue.enqueue("x")
    return queue.claim()


def shown(queue, qid=1):
    item = queue.get(qid)
    return item.progress, item.progress_note


def test_an_item_has_no_progress_until_its_handler_says_so(queue, item):
    assert (item.progress, item.progress_note) == (None, None)
    assert shown(queue) == (None, None)


def test_what_a_handler_says_is_seen_by_others_while_it_works(queue, open_queue):
    queue.enqueue("x")
    seen = []

    def handler(item):
        assert item.set_progress(0.4, "embedding") is True
        with open_queue() as other:
            seen.append(shown(other))

    queue.drain(handler)
    assert seen == [(0.4, "embedding")]


def test_another_process_sees_it(item, address, start):
    item.set_progress(0.25, "reading")
    assert start(PROGRAMS / "read_progress.py", address).communicate(timeout=30)[0] == "0.25 reading\n"


@pytest.mark.parametrize("fraction", [0, 0.0, 1, 1.0, True])
def test_the_ends_of_the_scale_belong_to_it(queue, item, fraction):
    assert item.set_progress(fraction)
    assert shown(queue) == (float(fraction), None)


@pytest.mark.parametrize("fraction", [-0.01, 1.01, float("nan"), float("inf"), "half", None])
def test_what_is_no_fraction_is_refused_and_nothing_is_written(queue, item, fraction):
    with pytest.raises((TypeError, ValueError), match="fraction"):
        item.set_progress(fraction)
    assert shown(queue) == (None, None)


def test_a_note_is_text(queue, item):
    with pytest.raises(TypeError, match="note"):
        item.set_progress(0.5, 7)
    assert shown(queue) == (None, None)


def test_what_comes_too_fast_is_left_out_and_the_next_is_not(queue, item, until):
    assert item.set_progress(0.1, "first")
    for step in range(2, 50):
        assert item.set_progress(step / 100, "too fast")
    assert shown(queue) == (0.1, "first")
    until(lambda: item.set_progress(0.6, "later") and shown(queue) == (0.6, "later"), limit=5)


def test_the_end_is_never_left_out(queue, item):
    item.set_progress(0.1)
    assert item.set_progress(1.0, "all of it")
    assert shown(queue) == (1.0, "all of it")


def test_throttling_is_per_item(queue):
    queue.enqueue_many(["a", "b"])
    for item in queue.claim_many(2):
        item.set_progress(0.5)
    assert [item.progress for item in queue.items()] == [0.5, 0.5]


def test_a_finished_item_keeps_what_was_said_last(queue, item):
    item.set_progress(0.5, "half")
    queue.mark_failed(item, "no")
    assert shown(queue) == (0.5, "half")


@pytest.mark.parametrize("ending", ["failed", "released", "lost", "retried"])
def test_a_new_attempt_starts_clean(queue, item, clock, ending):
    item.set_progress(0.5, "half")
    if ending == "failed":
        queue.mark_failed(item, "no", retry_in=0)
    elif ending == "released":
        queue.release(item)
    elif ending == "lost":
        clock.advance(61)
    else:
        queue.mark_failed(item, "no")
        queue.retry(item.id)
    again = queue.claim()
    assert (again.attempt, again.progress, again.progress_note) == (2, None, None)
    assert shown(queue) == (None, None)


def test_a_late_worker_cannot_change_the_progress_of_its_successor(queue, item, clock):
    clock.advance(61)
    successor = queue.claim()
    successor.set_progress(0.2, "mine")
    assert item.set_progress(0.9, "late") is False
    assert item.lost
    assert shown(queue) == (0.2, "mine")
    assert item.set_progress(0.95) is False


def test_after_the_end_of_a_claim_nothing_is_written(queue, item):
    queue.mark_done(item)
    assert item.set_progress(0.5) is False
    assert shown(queue) == (None, None)


def test_an_item_that_was_only_read_cannot_be_worked_on(queue, item):
    with pytest.raises(ValueError, match="only read"):
        queue.get(item.id).set_progress(0.5)


def test_progress_does_not_renew_the_lease_nor_count(queue, item, clock):
    until = queue.get(1).lease_until
    clock.advance(10)
    item.set_progress(0.5)
    assert (queue.get(1).lease_until, queue.get(1).retries, queue.get(1).attempt) == (until, 0, 1)


def test_a_postponed_item_shows_how_far_it_came(queue, clock):
    queue.enqueue("x")

    def handler(item):
        item.set_progress(0.7, "rate limit")
        raise RetryLater(30)

    queue.drain(handler)
    assert (queue.get(1).status, *shown(queue)) == ("pending", 0.7, "rate limit")


def test_what_was_said_last_is_there_when_the_item_has_ended_though_it_came_too_fast(queue, item):
    item.set_progress(0.1, "first")
    item.set_progress(0.9, "last")
    queue.mark_failed(item, "no")
    assert shown(queue) == (0.9, "last")


@pytest.mark.parametrize(("end", "progress"), [("mark_done", 1.0), ("mark_failed", 0.9)])
def test_an_item_that_is_done_is_complete_and_one_that_failed_shows_how_far_it_came(queue, item, end, progress):
    item.set_progress(0.9, "nearly")
    getattr(queue, end)(item, "x")
    assert shown(queue) == (progress, "nearly")


def test_a_done_item_whose_handler_reported_nothing_has_no_progress(queue, item):
    queue.mark_done(item)
    assert shown(queue) == (None, None)
