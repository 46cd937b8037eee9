"""Schedules that plain SQL broke, and ticks that were rolled back."""

import pytest
from membox_queue import Queue


def take(queue):
    """Handle what is due; return its contents."""
    contents = []
    while item := queue.claim():
        contents.append(item.content)
        queue.mark_done(item)
    return contents


def test_a_pattern_that_another_program_broke_does_not_hinder_claims(queue, path, clock, sql):
    queue.schedule("broken", "b", cron="0 * * * *")
    queue.schedule("fine", "f", every=3600)
    sql(path, "UPDATE membox_queue_schedules SET cron = 'whenever' WHERE name = 'broken'")
    clock.advance(3600)
    assert sorted(take(queue)) == ["b", "f"]
    clock.advance(3600)
    assert take(queue) == ["f"]
    assert [schedule.name for schedule in queue.schedules()] == ["broken", "fine"]


def test_a_rolled_back_tick_comes_again(queue, path, clock, sql):
    queue.schedule("s", "x", every=60)
    sql(
        path,
        "CREATE TRIGGER refuse BEFORE INSERT ON ingest_queue BEGIN SELECT raise(ABORT, 'not now'); END",
    )
    clock.advance(60)
    with pytest.raises(Exception, match="not now"):
        queue.claim()
    assert queue.schedules()[0].last_at is None
    sql(path, "DROP TRIGGER refuse")
    assert take(queue) == ["x"]


def test_schedules_tick_in_memory_too(clock):
    with Queue(":memory:") as queue:
        queue.schedule("s", "x", every=60)
        clock.advance(60)
        assert take(queue) == ["x"]
