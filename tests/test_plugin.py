"""The pytest plugin, as its users have it: nothing imported, the fixtures by their names."""

import asyncio
import re
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

import pytest
from loops_in_threads import nothing
from membox_queue import (
    AsyncQueue,
    DiskFullError,
    DrainReport,
    NewItem,
    Queue,
    QueueBusyError,
    QueueClosedError,
    _native,
)
from membox_queue.testing import FakeClock, SimulatedCrash

pytest_plugins = "pytester"


def test_a_test_that_fails_inside_a_handler_fails(membox_queue):
    membox_queue.enqueue("x")
    with pytest.raises(pytest.fail.Exception, match="never"):
        membox_queue.drain(lambda item: pytest.fail("never to be handled"))
    assert membox_queue.get(1).status == "pending"


# The queues.


def test_the_queue_is_a_real_one_in_a_file_of_the_tests_own(membox_queue, tmp_path):
    assert isinstance(membox_queue, Queue)
    assert membox_queue.path.parent == tmp_path
    assert membox_queue.enqueue("hello") == 1


def test_queues_of_one_test_share_one_file_unless_told_otherwise(membox_queue, make_queue, tmp_path):
    mail = make_queue("mail", lease=5)
    other = make_queue(path=tmp_path / "other.db")
    assert (mail.name, mail.options["lease"]) == ("mail", 5)
    assert mail.path == membox_queue.path != other.path
    membox_queue.enqueue("x")
    assert (make_queue().pending(), other.pending()) == (1, 0)


def test_an_async_queue_works_on_the_same_file(membox_queue, assert_done):
    async def use():
        async with AsyncQueue(membox_queue.path) as queue:
            await queue.enqueue("from asyncio")
            return await queue.drain(nothing)

    assert asyncio.run(use()) == DrainReport(done=1)
    assert_done(membox_queue, "from asyncio")


# The clock.


def test_the_clock_stands_still_and_moves_when_told(fake_clock, membox_queue):
    moment = fake_clock.now()
    assert membox_queue.get(membox_queue.enqueue("x")).enqueued_at == moment
    fake_clock.advance(90)
    fake_clock.advance(timedelta(hours=1))
    assert fake_clock.now() - moment == timedelta(seconds=3690)
    fake_clock.set(datetime(2030, 1, 2, 3, 4, 5, 678000, tzinfo=UTC))
    assert membox_queue.get(membox_queue.enqueue("y")).enqueued_at == fake_clock.now()
    assert "2030-01-02 03:04:05.678" in repr(fake_clock)
    with pytest.raises(ValueError, match="time zone"):
        fake_clock.set(datetime(2030, 1, 1))


def test_clocks_nest_and_the_real_one_runs_again_in_the_end():
    with FakeClock() as outer:
        outer.set(datetime(2030, 1, 1, tzinfo=UTC))
        with FakeClock() as inner:
            assert inner.now() == outer.now()
            inner.advance(50)
            assert _native.clock() == 1_893_456_050_000
        assert _native.clock() == 1_893_456_000_000
    assert abs(_native.clock() / 1000 - time.time()) < 60
    assert FakeClock.current is None


def test_advancing_wakes_a_claim_that_waits(membox_queue, fake_clock, until):
    membox_queue.enqueue("later", delay=3600)
    claimed = []
    thread = threading.Thread(target=lambda: claimed.append(membox_queue.claim(wait=100)))
    thread.start()
    fake_clock.advance(3599)
    assert not claimed
    fake_clock.advance(1)
    thread.join(30)
    assert claimed[0].content == "later"


def test_advancing_wakes_a_loop_that_waits(membox_queue, fake_clock, until):
    handled = []
    membox_queue.enqueue("later", delay=3600)
    thread = threading.Thread(target=lambda: membox_queue.work(lambda item: handled.append(item.content)))
    thread.start()
    fake_clock.advance(3600)
    until(lambda: handled)
    membox_queue.stop()
    thread.join(30)
    assert handled == ["later"]


# Failures on request.


def test_the_next_claim_is_busy_and_the_one_after_it_is_not(membox_queue, membox_faults):
    membox_queue.enqueue("x")
    membox_faults.busy()
    with pytest.raises(QueueBusyError, match="as a test has asked"):
        membox_queue.claim()
    assert membox_queue.claim().content == "x"


def test_a_loop_tries_again_when_the_store_is_busy_or_full(membox_queue, membox_faults, drain_now):
    troubles = []
    membox_queue.enqueue("x")
    membox_faults.busy()
    membox_faults.disk_full("finish")
    assert drain_now(nothing, on_error=lambda error, item, phase: troubles.append(phase)) == DrainReport(done=1)
    assert troubles == ["claim", "finish"]


def test_the_disk_is_full_for_as_long_as_the_block_lasts(membox_queue, membox_faults):
    membox_queue.enqueue("before")
    with membox_faults.disk_full():
        for _ in range(3):
            with pytest.raises(DiskFullError):
                membox_queue.enqueue("x")
        with pytest.raises(DiskFullError):
            membox_queue.claim()
    assert membox_queue.enqueue("after") == 2


def test_a_fault_goes_off_as_often_as_it_is_told(membox_queue, membox_faults):
    fault = membox_faults.disk_full("enqueue", times=2)
    for _ in range(2):
        with pytest.raises(DiskFullError):
            membox_queue.enqueue("x")
    assert membox_queue.enqueue("x") == 1
    assert not fault.disarm()
    assert membox_faults.busy().disarm()
    with pytest.raises(ValueError, match='there is no verb "sleep"'):
        membox_faults.busy("sleep")


def test_an_enqueue_that_was_committed_is_there_after_the_crash(membox_queue, membox_faults, assert_enqueued):
    membox_faults.crash_after("enqueue")
    with pytest.raises(SimulatedCrash):
        membox_queue.enqueue("x")
    assert_enqueued(membox_queue, "x", count=1)


def test_a_claim_that_died_comes_back_by_its_lease_alone(membox_queue, membox_faults, fake_clock):
    membox_queue.enqueue("x")
    membox_faults.crash_after("claim")
    with pytest.raises(SimulatedCrash):
        membox_queue.claim()
    assert membox_queue.claim() is None
    fake_clock.advance(60)
    assert membox_queue.claim().attempt == 2


@pytest.mark.parametrize("concurrency", [1, 2])
def test_work_whose_end_was_not_recorded_is_done_again(
    membox_queue, membox_faults, fake_clock, drain_now, assert_done, concurrency
):
    effects = []
    membox_queue.enqueue("x")
    membox_faults.crash_before("finish")
    with pytest.raises(SimulatedCrash):
        drain_now(lambda item: effects.append(item.content), concurrency=concurrency)
    assert membox_queue.counts()["processing"] == 1
    assert drain_now(nothing) == DrainReport()
    fake_clock.advance(120)
    drain_now(lambda item: effects.append(item.content))
    assert effects == ["x", "x"]
    assert_done(membox_queue, attempt=2, retries=1)


def test_work_whose_end_was_recorded_is_not_done_again(membox_queue, membox_faults, fake_clock, drain_now, assert_done):
    membox_queue.enqueue("x")
    membox_faults.crash_after("finish")
    with pytest.raises(SimulatedCrash):
        drain_now(nothing)
    fake_clock.advance(120)
    assert drain_now(nothing) == DrainReport()
    assert_done(membox_queue, "x", attempt=1)


def test_the_dead_give_nothing_back_from_a_with_block(membox_queue, membox_faults, fake_clock):
    membox_queue.enqueue("x")
    membox_faults.crash_before("enqueue")
    with pytest.raises(SimulatedCrash), membox_queue.claim():
        membox_queue.enqueue("next step")
    assert membox_queue.counts()["processing"] == 1
    fake_clock.advance(120)
    assert membox_queue.claim().retries == 1


def test_a_crash_in_asyncio_gives_nothing_back(membox_queue, membox_faults, drain_now):
    membox_queue.enqueue("x")
    membox_faults.crash_before("finish")
    with pytest.raises(SimulatedCrash):
        asyncio.run(drain_now.asynchronously(nothing))
    assert membox_queue.counts()["processing"] == 1


# Assertions.


def test_items_that_fit_are_returned(
    membox_queue, assert_enqueued, assert_done, assert_failed, assert_empty, drain_now
):
    assert_empty(membox_queue)
    membox_queue.enqueue({"id": 1}, project="p", group="coder", headers={"trace": "t"})
    membox_queue.enqueue({"id": 2}, project="p")
    assert [item.id for item in assert_enqueued(membox_queue, project="p", count=2)] == [1, 2]
    [item] = assert_enqueued(membox_queue, {"id": ANY}, group="coder", headers={"trace": "t"})
    assert item.content == {"id": 1}
    assert assert_enqueued(membox_queue, "something else", count=0) == []
    drain_now(lambda item: 1 / (item.content["id"] - 1) or "result")
    assert_failed(membox_queue, {"id": 1}, error=re.compile(r"^Zero\w+Error"))
    assert_done(membox_queue, {"id": 2}, result=1.0, count=1)
    assert_enqueued(membox_queue, count=0)
    assert_empty(membox_queue)


def test_a_field_that_no_item_has_is_refused(membox_queue, assert_enqueued):
    with pytest.raises(TypeError, match=r"no field 'prioritty'; they have after, attempt, .*priority"):
        assert_enqueued(membox_queue, prioritty=5)
    with pytest.raises(TypeError, match="no field 'check'"):
        assert_enqueued(membox_queue, check=1)


def test_a_failed_assertion_lists_what_is_there(membox_queue, fake_clock, drain_now, assert_enqueued, assert_failed):
    fake_clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    membox_queue.enqueue_many([NewItem("broken", priority=9), "word " * 100])
    drain_now(lambda item: 1 / 0, membox_queue, limit=1, to_the_end=False)
    membox_queue.enqueue("later", delay=60)
    with pytest.raises(AssertionError) as raised:
        assert_enqueued(membox_queue, "broken", priority=5)
    assert str(raised.value).splitlines() == [
        "expected an item waiting in queue 'ingest' with content='broken', priority=5, found none. It holds",
        "  #1   failed     'broken'  priority=9  error: ZeroDivisionError: division by zero",
        "  #2   pending    'word word word word word word word word word word word wor…  priority=0",
        "  #3   pending    'later'  priority=0  due 2030-01-01 00:01:00",
    ]
    with pytest.raises(AssertionError, match=r"expected an item failed .* with error=…timed out…, found none"):
        assert_failed(membox_queue, error="timed out")
    with pytest.raises(AssertionError, match=r"expected exactly 3 waiting in queue 'ingest', found 2\. It holds"):
        assert_enqueued(membox_queue, count=3)


def test_a_failed_assertion_about_many_items_shows_the_newest(membox_queue, make_queue, assert_empty, assert_done):
    with pytest.raises(AssertionError, match=r"found none\. It holds no items at all\.$"):
        assert_done(make_queue("mail"))
    membox_queue.enqueue_many(str(number) for number in range(1030))
    with pytest.raises(AssertionError) as raised:
        assert_empty(membox_queue)
    lines = str(raised.value).splitlines()
    assert (lines[0], lines[1]) == ("queue 'ingest' is not empty:", "  … 1010 earlier")
    assert lines[2].startswith("  #1011 pending")
    assert lines[-1].startswith("  #1030 pending")


# The plugin in projects of others.


def test_a_project_that_does_not_use_it_does_not_load_the_native_module(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_nothing_of_it_is_there():
            assert "membox_queue.testing" in sys.modules
            assert "membox_queue._native" not in sys.modules
            assert "asyncio" not in sys.modules or "membox_queue.aio" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-W", "error").assert_outcomes(passed=1)


USERS = """
import time

import pytest
from membox_queue import QueueClosedError, _native

opened = []

@pytest.mark.parametrize("number", range(6))
def test_every_test_has_a_queue_of_its_own(membox_queue, fake_clock, number):
    assert membox_queue.enqueue(number) == 1
    fake_clock.advance(10 * 86400)
    opened.append(membox_queue)

def test_the_clock_after_the_queue(membox_queue, fake_clock):
    assert membox_queue.get(membox_queue.enqueue(1)).enqueued_at == fake_clock.now()

def test_the_clock_before_the_queue(fake_clock, membox_queue):
    assert membox_queue.get(membox_queue.enqueue(1)).enqueued_at == fake_clock.now()

def test_a_fault_is_left_armed(membox_faults):
    membox_faults.disk_full(times=1000)

def test_nothing_is_left_behind(membox_queue):
    assert membox_queue.enqueue("x") == 1
    assert abs(_native.clock() / 1000 - time.time()) < 86400
    for queue in opened:
        with pytest.raises(QueueClosedError):
            queue.pending()
"""


@pytest.mark.parametrize("options", [[], ["-p", "xdist", "-n", "2"]], ids=["alone", "xdist"])
def test_every_test_has_its_own_and_leaves_nothing_behind(pytester, options):
    pytester.makepyfile(USERS)
    pytester.runpytest_subprocess("-W", "error", *options).assert_outcomes(passed=10)


def test_a_failure_shows_the_users_own_line_and_what_is_there(pytester):
    pytester.makepyfile(
        """
        def test_a_document_is_handed_over(membox_queue, assert_enqueued):
            membox_queue.enqueue("something else", project="p")
            assert_enqueued(membox_queue, "the document", project="p")
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>*assert_enqueued(membox_queue, "the document", project="p")',
            "E*AssertionError: expected an item waiting in queue 'ingest' with content='the document', project='p', "
            "found none. It holds",
            "E*#1   pending    'something else'  project='p'",
            "test_*.py:3: AssertionError",
        ]
    )


def test_importing_it_without_pytest_running_is_cheap():
    program = "import sys, membox_queue.testing; print('membox_queue._native' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_the_plugin_is_closed_with_its_queues(make_queue):
    queue = make_queue()
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.pending()


def test_what_an_item_waits_for_is_asserted(membox_queue, assert_after):
    first, second = membox_queue.enqueue_many(["a", "b"])
    id = membox_queue.enqueue("c", after=[second, first])
    assert [item.content for item in assert_after(membox_queue, id, second, membox_queue.get(first))] == ["b", "a"]
    assert assert_after(membox_queue, first) == []
    with pytest.raises(AssertionError, match=rf"expected item {id} after \[1\], found \[2, 1\]"):
        assert_after(membox_queue, id, first)
    with pytest.raises(AssertionError, match="has no item 9"):
        assert_after(membox_queue, 9)


def test_an_assertion_on_a_drain_shows_what_was_left(pytester):
    pytester.makepyfile(
        """
        from membox_queue import DrainReport

        def test_it(make_queue, drain_now):
            queue = make_queue("drafts")
            question = make_queue("approvals").enqueue("publish?")
            queue.enqueue("print", after=[question])
            queue.enqueue("later", delay=3600)
            assert drain_now(lambda item: None, queue) == DrainReport(done=2)
        """
    )
    result = pytester.runpytest_subprocess("-vv")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*DrainReport(), left: drafts #2 blocked 'print' after #1 in approvals; drafts #3 pending 'later' due *"]
    )


def test_a_wrong_dependency_is_told_with_what_is_there(pytester):
    pytester.makepyfile(
        """
        def test_it(membox_queue, assert_after):
            first, second = membox_queue.enqueue_many(["a", "b"])
            id = membox_queue.enqueue("c", after=[first])
            assert_after(membox_queue, id, first, second)
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*assert_after(membox_queue, id, first, second)",
            "E*AssertionError: expected item 3 after [[]1, 2], found [[]1].",
            "E*#1   pending    'a'",
        ]
    )


def test_a_removed_dependency_is_none_and_keeps_its_place(membox_queue, drain_now, assert_after):
    first, second = membox_queue.enqueue_many(["a", "b"])
    id = membox_queue.enqueue("c", after=[first, second], if_failed="run")
    connection = sqlite3.connect(membox_queue.path)
    connection.execute("DELETE FROM ingest_queue WHERE id = ?", [first])
    connection.commit()
    connection.close()
    drain_now(lambda item: None)
    gone, there = assert_after(membox_queue, id, first, second)
    assert (gone, there.content) == (None, "b")


def test_what_another_queue_depends_on_is_asserted(membox_queue, make_queue, assert_after):
    id = membox_queue.enqueue("book", after=[NewItem(number, queue="pages") for number in range(2)])
    pages = make_queue("pages").items()
    assert [page.queue for page in assert_after(membox_queue, id, *pages)] == ["pages", "pages"]
