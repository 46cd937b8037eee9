"""enqueue: one item in, its id back."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest


def test_ids_are_plain_ints_in_the_order_of_arrival(queue):
    ids = [queue.enqueue("a"), queue.enqueue("b")]
    assert ids == [1, 2]
    assert {type(qid) for qid in ids} == {int}


def test_what_was_said_about_an_item_comes_back_with_it(queue):
    said = {"project": "p", "source_path": "a/b.md", "doc_date": "2026-06-14", "priority": -3, "max_retries": 7}
    headers = {"trace": "00-ab", "to": ["x", None], "n": 1}
    item = queue.get(queue.enqueue("x", headers=headers, **said))
    assert {name: getattr(item, name) for name in said} == said
    assert item.headers == headers


def test_a_new_item_is_pending_and_nothing_has_happened_to_it_yet(queue, clock):
    item = queue.get(queue.enqueue("x"))
    assert (item.status, item.retries, item.attempt, item.priority, item.headers) == ("pending", 0, 0, 0, {})
    assert item.enqueued_at == clock.now
    unset = "project source_path doc_date error result worker max_retries started_at finished_at run_at lease_until"
    assert {name: getattr(item, name) for name in unset.split()} == dict.fromkeys(unset.split())


def test_a_path_object_and_a_date_are_stored_as_text(queue):
    item = queue.get(queue.enqueue("x", source_path=Path("a") / "b.md", doc_date=date(2026, 6, 14)))
    assert (item.source_path, item.doc_date) == ("a/b.md", "2026-06-14")


def test_a_delay_puts_the_item_off_from_now(queue, clock):
    item = queue.get(queue.enqueue("x", delay=1.5))
    assert item.run_at == clock.now + timedelta(seconds=1.5)
    item = queue.get(queue.enqueue("x", delay=timedelta(hours=1)))
    assert item.run_at == clock.now + timedelta(hours=1)


def test_run_at_is_a_moment_in_any_time_zone(queue):
    moment = datetime(2199, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    item = queue.get(queue.enqueue("x", run_at=moment))
    assert item.run_at == moment
    assert item.run_at.tzinfo == UTC


@pytest.mark.parametrize("when", [{"delay": 0}, {"run_at": datetime(2001, 1, 1, tzinfo=UTC)}])
def test_the_present_and_the_past_mean_now(queue, when):
    qid = queue.enqueue("x", **when)
    assert queue.get(qid).run_at is None
    assert queue.claim().id == qid


def test_any_64_bit_priority_is_kept(queue):
    for priority in (-(2**63), 2**63 - 1):
        assert queue.get(queue.enqueue("x", priority=priority)).priority == priority
