"""The drain_now fixture of the pytest plugin: retries and delays without waiting."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from loops_in_threads import nothing
from membox_queue import (
    DrainReport,
    GiveUp,
    NewItem,
    Next,
    Queue,
    Rate,
    Retry,
    RetryLater,
    Worker,
)


def test_what_is_due_is_handled_in_all_queues_of_the_test(membox_queue, make_queue, drain_now):
    mail = make_queue("mail")
    membox_queue.enqueue("a")
    mail.enqueue("letter", delay=60)

    def handler(item):
        if item.content == "a":
            mail.enqueue("b")

    assert drain_now(handler) == DrainReport(done=2)
    assert mail.pending() == 1


def test_only_the_named_queue_is_drained(membox_queue, make_queue, drain_now):
    mail = make_queue("mail")
    membox_queue.enqueue("a")
    mail.enqueue("b")
    assert drain_now(nothing, mail) == DrainReport(done=1)
    assert membox_queue.pending() == 1


def test_without_a_queue_there_is_nothing_to_drain(drain_now):
    with pytest.raises(ValueError, match="membox_queue or make_queue"):
        drain_now(nothing)


def test_a_retry_is_tested_without_waiting(make_queue, fake_clock, drain_now, assert_done):
    queue = make_queue(retry=Retry(max=5, base=30, jitter=0))
    qid = queue.enqueue("document")
    began = fake_clock.now()
    attempts = []

    def flaky(item):
        attempts.append((fake_clock.now() - began).total_seconds())
        if item.attempt < 3:
            raise ConnectionError("the model is busy")

    assert drain_now(flaky) == DrainReport(done=1, postponed=2)
    assert attempts == [0, 30, 90]
    assert_done(queue, "document", attempt=3, retries=2)
    assert [attempt.ending for attempt in queue.history(qid)] == ["postponed", "postponed", "done"]


def test_retries_that_are_used_up_come_to_rest_as_failed(make_queue, fake_clock, drain_now, assert_failed):
    queue = make_queue(retry=Retry(max=3, base=30))
    queue.enqueue("document")
    assert drain_now(lambda item: 1 / 0) == DrainReport(failed=1, postponed=2)
    assert_failed(queue, "document", error="ZeroDivisionError", retries=3)


def test_one_step_at_a_time_leaves_the_clock_alone(make_queue, fake_clock, drain_now, assert_enqueued):
    queue = make_queue(retry=Retry(max=3, base=30, jitter=0))
    queue.enqueue("document")
    began = fake_clock.now()
    assert drain_now(lambda item: 1 / 0, to_the_end=False) == DrainReport(postponed=1)
    assert fake_clock.now() == began
    assert_enqueued(queue, run_at=began + timedelta(seconds=30), retries=1)


def test_delayed_items_are_handled_in_the_order_they_fall_due(membox_queue, fake_clock, drain_now):
    handled = []
    membox_queue.enqueue_many([NewItem("second", delay=7200), NewItem("first", delay=60), "now"])
    assert drain_now(lambda item: handled.append(item.content)) == DrainReport(done=3)
    assert handled == ["now", "first", "second"]


def test_without_the_fake_clock_time_is_not_skipped(membox_queue, drain_now):
    membox_queue.enqueue("later", delay=3600)
    assert drain_now(nothing) == DrainReport()


def test_the_handlers_exception_is_raised_when_asked_for(membox_queue, drain_now, assert_failed, assert_enqueued):
    membox_queue.enqueue_many(["bad", "good"])
    with pytest.raises(KeyError, match="bad"):
        drain_now(lambda item: {"good": 1}[item.content], raise_errors=True)
    assert_failed(membox_queue, "bad", error="KeyError")
    assert_enqueued(membox_queue, "good")


@pytest.mark.parametrize("request_", [RetryLater(5), GiveUp("no use")])
def test_what_a_handler_asks_for_is_no_error(membox_queue, drain_now, request_):
    def handler(item):
        if item.attempt == 1:
            raise request_

    membox_queue.enqueue("x")
    drain_now(handler, raise_errors=True)


def test_failed_items_are_brought_back_once(membox_queue, drain_now):
    membox_queue.enqueue("x")
    assert drain_now(lambda item: 1 / 0) == DrainReport(failed=1)
    assert drain_now(lambda item: 1 / 0, retry_failed=True) == DrainReport(retried=1, failed=1)


def test_a_worker_elsewhere_does_not_keep_a_test_from_draining(membox_queue, make_queue, drain_now):
    assert make_queue().acquire_worker_lease()
    membox_queue.enqueue("x")
    assert drain_now(nothing, membox_queue).done == 1


def test_an_exclusive_drain_is_refused_beside_a_worker(membox_queue, make_queue, drain_now):
    assert make_queue().acquire_worker_lease()
    membox_queue.enqueue("x")
    assert drain_now(nothing, membox_queue, exclusive=True) == DrainReport(refused=True)


def test_a_limit_is_one_for_all_queues(membox_queue, make_queue, drain_now):
    mail = make_queue("mail")
    for queue in (membox_queue, mail):
        queue.enqueue_many(["a", "b"])
    assert drain_now(nothing, limit=3) == DrainReport(done=3)
    assert mail.pending() == 1


def test_what_is_put_off_for_ever_is_told(membox_queue, fake_clock, drain_now, monkeypatch):
    monkeypatch.setattr("membox_queue.testing.draining.JUMPS", 5)

    def never(item):
        raise RetryLater(60, count=False)

    membox_queue.enqueue("x")
    with pytest.raises(AssertionError, match="moved on 5 times"):
        drain_now(never)


@pytest.mark.parametrize("limited", ["rate", "group_rate"])
def test_the_clock_moves_on_to_the_slots_of_a_rate(make_queue, fake_clock, drain_now, limited):
    queue = make_queue(**{limited: Rate(2, per=60)})
    queue.enqueue_many(NewItem(str(number), group="g") for number in range(5))
    began, at = fake_clock.now(), []
    assert drain_now(lambda item: at.append((fake_clock.now() - began).total_seconds())) == DrainReport(done=5)
    assert at == [0, 0, 60, 60, 120]


def test_schedules_tick_on_the_way_to_something_and_keep_no_drain(membox_queue, fake_clock, drain_now):
    began, handled = fake_clock.now(), []
    membox_queue.schedule("s", "tick", every=60)
    assert drain_now(nothing) == DrainReport()
    membox_queue.enqueue("x", delay=150)
    drain_now(lambda item: handled.append(((fake_clock.now() - began).total_seconds(), item.content)))
    assert handled == [(60, "tick"), (120, "tick"), (150, "x")]


def test_the_clock_moves_to_a_moment_through_all_that_comes_before(membox_queue, fake_clock, drain_now):
    fake_clock.set(datetime(2026, 3, 1, 12, tzinfo=UTC))
    membox_queue.schedule("report", "write the report", cron="0 6 * * *")
    membox_queue.enqueue("x", delay=timedelta(days=30))
    end = datetime(2026, 3, 8, 6, tzinfo=UTC)
    assert drain_now(nothing, until=end) == DrainReport(done=7)
    assert fake_clock.now() == end
    assert drain_now(nothing, until=end + timedelta(hours=1)) == DrainReport()
    assert fake_clock.now() == end + timedelta(hours=1)


def test_what_is_paused_is_not_waited_for(membox_queue, make_queue, fake_clock, drain_now):
    began = fake_clock.now()
    make_queue("mail").enqueue("x", delay=60)
    make_queue("mail").pause()
    membox_queue.enqueue("y", delay=90)
    assert drain_now(nothing) == DrainReport(done=1)
    assert fake_clock.now() == began + timedelta(seconds=90)


@pytest.mark.parametrize("wrong", [{"until": datetime(2026, 1, 1)}, {"until": datetime.now(UTC), "to_the_end": False}])
def test_a_moment_that_the_clock_cannot_be_moved_to_is_refused(membox_queue, fake_clock, drain_now, wrong):
    with pytest.raises(ValueError, match="until"):
        drain_now(nothing, **wrong)


def test_without_the_fake_clock_there_is_no_moment_to_move_to(membox_queue, drain_now):
    with pytest.raises(ValueError, match="fake_clock"):
        drain_now(nothing, until=datetime.now(UTC))


def test_a_handler_that_is_awaited_is_drained_in_its_loop(make_queue, fake_clock, drain_now, assert_done):
    queue = make_queue(retry=Retry(max=3, base=30))
    queue.enqueue("x")

    async def flaky(item):
        await asyncio.sleep(0)
        if item.attempt == 1:
            raise ConnectionError("busy")
        return "fine"

    assert asyncio.run(drain_now.asynchronously(flaky)) == DrainReport(done=1, postponed=1)
    assert_done(queue, result="fine")
    queue.enqueue("y")
    with pytest.raises(ConnectionError):
        asyncio.run(drain_now.asynchronously(flaky, raise_errors=True))


def charge(item):
    return Next(item.content, queue="pack")


def pack(item):
    boxes = item.gather("boxes", [NewItem(part, queue="boxes") for part in item.content])
    return Next([box.result for box in boxes], queue="ship")


PIPELINE = {"ship": lambda item: len(item.content), "boxes": lambda item: f"box of {item.content}", "pack": pack}


def test_a_chain_is_followed_through_the_queues_of_a_dict(make_queue, drain_now, assert_done):
    orders, ship = make_queue("orders"), make_queue("ship")
    id = orders.enqueue(["pen", "ink"])
    after = ship.enqueue(["label"], after=[id])
    assert drain_now({"orders": charge, **PIPELINE}) == DrainReport(done=4, moved=2, blocked=1)
    assert orders.wait(id, timeout=0).result == 2
    assert_done(ship, ["label"], id=after)


def test_a_queue_that_only_moves_items_back_is_no_end(make_queue, drain_now):
    """The first queue is looked at again although the second has ended nothing."""
    first, _ = make_queue("first"), make_queue("second")
    id = first.enqueue(0)

    def back_and_forth(item):
        number = item.content + 1
        return number if number == 9 else Next(number, queue="second" if item.queue == "first" else "first")

    assert drain_now(back_and_forth) == DrainReport(done=1, moved=8)
    assert first.wait(id, timeout=0).result == 9


def test_a_limit_counts_what_moves_and_what_blocks(make_queue, drain_now):
    make_queue("orders").enqueue(["pen"])
    make_queue("pack")
    assert drain_now({"orders": charge, **PIPELINE}, limit=2) == DrainReport(moved=1, blocked=1)


def test_a_worker_is_drained_with_its_handlers_options_and_middleware(make_queue, fake_clock, drain_now):
    orders = make_queue("orders")
    id = orders.enqueue(["pen"])
    seen = []

    def note(item, call_next):
        seen.append(item.queue)
        return call_next(item)

    def refused_once(item):
        if item.attempt == 1:
            raise ConnectionError("the bank is busy")
        return charge(item)

    worker = Worker(
        orders.path,
        {**PIPELINE, "orders": refused_once},
        options={"orders": {"retry": Retry(max=2, base=60)}},
        middleware=[note],
    )
    assert drain_now(worker) == DrainReport(done=2, moved=2, postponed=1, blocked=1)
    assert orders.wait(id, timeout=0).result == 1
    assert seen == ["orders", "orders", "pack", "boxes", "pack", "ship"]
    with pytest.raises(ValueError, match="its own queues"):
        drain_now(worker, orders)


def test_registered_handlers_need_not_be_named(make_queue, drain_now):
    orders = make_queue("orders")

    @orders.handler(name="ship")
    def send(order: int) -> str:
        return f"sent {order}"

    @orders.handler
    def take(order: int) -> str:
        return send.next(order)

    id = take.enqueue(7)
    assert drain_now() == DrainReport(done=1, moved=1)
    assert orders.wait(id, timeout=0).result == "sent 7"


def test_without_any_handler_there_is_nothing_to_run(membox_queue, drain_now):
    with pytest.raises(TypeError, match="no handler"):
        drain_now()
    with pytest.raises(ValueError, match="no handler for ingest"):
        drain_now({"mail": nothing}, membox_queue)
    with pytest.raises(ValueError, match="no handler for any queue"):
        drain_now({})


def test_queues_in_memory_are_each_opened_by_the_test(make_queue, drain_now):
    make_queue(path=":memory:").enqueue("x")
    with pytest.raises(ValueError, match="in memory"):
        drain_now({"ingest": nothing, "mail": nothing})
    assert drain_now({"ingest": nothing}) == DrainReport(done=1)


def test_a_sleeping_item_is_slept_out_with_the_fake_clock(membox_queue, fake_clock, drain_now):
    began = fake_clock.now()

    def sleepy(item):
        item.sleep("cool down", 3600)
        return (fake_clock.now() - began).total_seconds()

    id = membox_queue.enqueue("x")
    report = drain_now(sleepy)
    assert (report, report.left) == (DrainReport(done=1, postponed=1), ())
    assert membox_queue.wait(id, timeout=0).result == 3600


def test_the_report_knows_what_is_left_and_why(make_queue, fake_clock, drain_now):
    queue, approvals = make_queue("drafts"), make_queue("approvals")
    fake_clock.set(datetime(2026, 3, 1, 12, tzinfo=UTC))
    question = approvals.enqueue("publish?")
    blocked = queue.enqueue("print", after=[question])
    later = queue.enqueue("later", delay=3600)
    moved = queue.enqueue("refund me")

    def handler(item):
        return Next(queue="refund") if item.content == "refund me" else None

    report = drain_now(handler, queue, to_the_end=False)
    assert report == DrainReport(moved=1)
    assert DrainReport(moved=1) == report
    assert report != DrainReport(done=1)
    assert [(item.id, item.queue) for item in report.left] == [
        (blocked, "drafts"),
        (later, "drafts"),
        (moved, "refund"),
    ]
    assert repr(report) == (
        f"DrainReport(moved=1), left: drafts #{blocked} blocked 'print' after #{question} in approvals; "
        f"drafts #{later} pending 'later' due 2026-03-01 13:00:00; refund #{moved} pending 'refund me'"
    )


def test_a_long_rest_is_counted_in_the_report(membox_queue, drain_now):
    membox_queue.enqueue_many([NewItem(number, delay=60) for number in range(7)])
    report = drain_now(nothing)
    assert len(report.left) == 7
    assert repr(report).endswith("; and 2 more")


def test_a_pipeline_is_drained_in_the_event_loop(make_queue, drain_now):
    orders = make_queue("orders")
    id = orders.enqueue(["pen"])

    async def charged(item):
        await asyncio.sleep(0)
        return Next(item.content, queue="ship")

    ended = asyncio.run(drain_now.asynchronously({"orders": charged, "ship": PIPELINE["ship"]}))
    assert ended == DrainReport(done=1, moved=1)
    assert orders.wait(id, timeout=0).result == 1


def test_a_dict_opens_its_queues_in_the_file_of_the_test(membox_queue, drain_now):
    with Queue(membox_queue.path, "mail") as mail:
        mail.enqueue("letter")
    assert drain_now({"ingest": nothing, "mail": nothing}) == DrainReport(done=1)
