"""Next: an item goes on with another queue or content, and stays the same item."""

import asyncio
from datetime import date, timedelta

import pytest
from membox_queue import DuplicateItemError, GiveUp, Next, PayloadTooLargeError, Worker


def contents(queue):
    return [item.content for item in queue.items()]


def test_a_line_of_stages_is_one_item_whose_result_is_that_of_the_last(open_queue, address):
    orders, ship = open_queue("orders"), open_queue("ship")
    id = orders.enqueue({"order": 7}, priority=4, project="p", group="g", headers={"h": 1}, max_retries=5)
    handlers = {
        "orders": lambda item: Next({"order": 7, "paid": True}, queue="ship"),
        "ship": lambda item: {"shipped": item.content["order"]},
    }
    report = Worker(address, handlers).drain()
    assert (report.moved, report.done) == (1, 1)
    item = ship.get(id)
    assert (item.id, item.queue, item.home, item.stage, item.attempt) == (id, "ship", "orders", 1, 2)
    assert (item.content, item.result) == ({"order": 7, "paid": True}, {"shipped": 7})
    kept = (item.priority, item.project, item.group, item.headers, item.max_retries)
    assert kept == (4, "p", "g", {"h": 1}, 5)
    assert orders.get(id).result == orders.wait(id, timeout=1).result == {"shipped": 7}
    assert open_queue("third").get(id) is None


def test_a_handler_chooses_a_branch(open_queue, address):
    orders = open_queue("orders")
    ids = orders.enqueue_many([30, 3000])
    handlers = {
        "orders": lambda item: Next(queue="refund" if item.content > 1000 else "ship"),
        "refund": lambda item: "refunded",
        "ship": lambda item: "shipped",
    }
    Worker(address, handlers).drain()
    assert [orders.get(id).result for id in ids] == ["shipped", "refunded"]


def test_a_loop_and_a_way_back(queue, open_queue, address):
    id = queue.enqueue(0)
    report = queue.drain(lambda item: Next(item.content + 1) if item.content < 12 else {"cycles": item.stage})
    assert (report.moved, report.done) == (12, 1)
    assert (queue.get(id).result, queue.get(id).stage, queue.get(id).home) == ({"cycles": 12}, 12, "ingest")
    there = queue.enqueue("there and back")
    handlers = {
        "ingest": lambda item: Next(queue="away") if item.stage == 0 else "back",
        "away": lambda item: Next(queue="ingest"),
    }
    Worker(address, handlers).drain()
    assert (queue.get(there).result, queue.get(there).queue, queue.get(there).stage) == ("back", "ingest", 2)
    assert queue.counts()["done"] == 2
    assert open_queue("away").counts() == dict.fromkeys(queue.counts(), 0)


def test_what_is_left_out_stays_and_none_removes(queue):
    first = {"project": "p", "group": "g", "headers": {"h": 1}, "max_retries": 5, "priority": 2}
    id = queue.enqueue("x", **first)
    queue.mark_done(queue.claim(), Next())
    item = queue.get(id)
    assert {name: getattr(item, name) for name in first} == first
    assert item.content == "x"
    queue.mark_done(queue.claim(), Next(None, group=None, project=None, headers=None, max_retries=None, priority=9))
    item = queue.get(id)
    assert (item.content, item.group, item.project, item.headers, item.max_retries) == (None, None, None, {}, None)
    assert item.priority == 9
    queue.mark_done(queue.claim(), Next(b"bytes", group="h", project="q", headers={"i": 2}, max_retries=1))
    item = queue.claim()
    assert (item.content, item.group, item.project, item.headers, item.max_retries) == (b"bytes", "h", "q", {"i": 2}, 1)
    assert item.priority == 9


@pytest.mark.parametrize("change", [{"headers": {"h": 2}}, {"content": "y"}, {"content": "y", "headers": {"h": 2}}, {}])
def test_a_stage_is_delivered_as_intact(queue, change):
    queue.enqueue("x", headers={"h": 1})
    queue.mark_done(queue.claim(), Next(**change))
    item = queue.claim()
    assert (item.content, item.headers) == (change.get("content", "x"), change.get("headers", {"h": 1}))


def test_a_waiter_at_home_gets_the_end_of_the_last_stage(open_queue, address, background):
    orders = open_queue("orders")
    id = orders.enqueue("x")
    waiting = background(orders.wait, id, timeout=30)
    orders.mark_done(orders.claim(), Next(queue="ship"))
    ship = open_queue("ship")
    item = ship.claim()
    assert not waiting.done()
    ship.mark_done(item, "shipped")
    assert waiting.result(30).result == "shipped"


def test_the_same_receipt_begins_one_stage_only(queue, open_queue):
    queue.enqueue("x")
    item = queue.claim()
    assert queue.mark_done(item, Next("y", queue="b")) is True
    assert queue.mark_done(item, Next("z", queue="c")) is False
    assert queue.mark_done(item, "result") is False
    assert contents(open_queue("b")) == ["y"]
    assert contents(open_queue("c")) == []


def test_a_late_worker_begins_no_stage(queue, clock):
    queue.enqueue("x")
    late = queue.claim(lease=1)
    clock.advance(2)
    second = queue.claim()
    assert queue.mark_done(late, Next("y")) is False
    assert [attempt.ending for attempt in queue.history(late.id)] == ["lost"]
    assert queue.mark_done(second, Next("z")) is True
    assert (contents(queue), queue.claim().stage) == (["z"], 1)


def test_a_handler_that_raises_after_all_begins_no_stage(queue):
    id = queue.enqueue("x")

    def handler(item):
        Next("y", queue="other")
        raise LookupError

    queue.drain(handler)
    assert (queue.get(id).stage, queue.get(id).status) == (0, "failed")


def test_a_cancelled_item_begins_no_stage(queue):
    id = queue.enqueue("x")
    item = queue.claim()
    queue.cancel(id)
    assert queue.mark_done(item, Next("y")) is False
    assert (queue.get(id).status, queue.get(id).stage) == ("cancelled", 0)
    assert [attempt.ending for attempt in queue.history(id)] == ["cancelled"]


def test_a_key_belongs_to_home_for_the_whole_way(open_queue):
    orders = open_queue("orders")
    id = orders.enqueue("x", key="order-7")
    orders.mark_done(orders.claim(), Next(queue="a"))
    a, b = open_queue("a"), open_queue("b")
    a.mark_done(a.claim(), Next(queue="b"))
    assert orders.enqueue("again", key="order-7") == id
    assert orders.get(key="order-7").id == id
    beside = a.enqueue("its own", key="order-7")
    b_own = b.enqueue("its own", key="order-7")
    assert len({id, beside, b_own}) == 3
    assert b.get(key="order-7").id == b_own
    b.mark_done(next(item for item in b.claim_many(2) if item.id == id))
    assert orders.enqueue("new", key="order-7") not in (id, beside, b_own)


def test_key_ttl_counts_from_the_enqueue(queue, clock):
    id = queue.enqueue("x", key="k", key_ttl=60)
    clock.advance(40)
    queue.mark_done(queue.claim(), Next(queue="queue of the end"))
    clock.advance(10)
    assert queue.enqueue("y", key="k") == id


def test_a_stage_has_a_fresh_allowance(queue, clock):
    id = queue.enqueue("x", max_retries=2)
    queue.mark_failed(queue.claim(), "no", retry_in=0)
    queue.mark_done(queue.claim(), Next("y", max_retries=1))
    item = queue.claim()
    assert (item.retries, item.attempt, item.error) == (0, 3, None)
    queue.mark_failed(item, "no", retry_in=0)
    assert (queue.get(id).status, queue.get(id).retries) == ("failed", 1)


def test_history_has_the_stages_with_their_queue_and_content(open_queue, clock):
    orders = open_queue("orders", worker="w1")
    id = orders.enqueue({"order": 7})
    orders.mark_failed(orders.claim(), "first", retry_in=0)
    began = clock.now
    item = orders.claim()
    clock.advance(5)
    orders.mark_done(item, Next(b"paid", queue="ship"))
    ship = open_queue("ship")
    ship.mark_done(ship.claim())
    history = orders.history(id)
    assert [(each.ending, each.queue, each.stage, each.content) for each in history] == [
        ("postponed", "orders", 0, None),
        ("moved", "orders", 0, {"order": 7}),
        ("done", "ship", 1, None),
    ]
    moved = history[1]
    assert (moved.worker, moved.started_at, moved.ended_at) == ("w1", began, began + timedelta(seconds=5))
    assert [each.attempt for each in ship.history(id)] == [1, 2, 3]
    assert open_queue("third").history(id) == []


def test_a_long_loop_leaves_one_item_and_a_short_history(queue):
    id = queue.enqueue(0)
    queue.drain(lambda item: Next(item.content + 1) if item.content < 300 else None)
    assert [item.id for item in queue.items()] == [id]
    history = queue.history(id)
    assert len(history) == 20
    assert (history[-2].content, history[-2].stage, history[-1].ending) == (299, 299, "done")


def test_content_that_is_not_kept_is_not_kept_in_the_history(open_queue):
    queue = open_queue("brief", keep_content=False)
    id = queue.enqueue("secret")
    queue.mark_done(queue.claim(), Next("another secret"))
    assert queue.history(id)[0].content == "secret"
    queue.mark_done(queue.claim())
    assert [attempt.content for attempt in queue.history(id)] == [None, None]


def test_counts_of_both_queues_are_true(queue, open_queue):
    other = open_queue("other")
    queue.enqueue_many(["a", "b", "c"])
    queue.mark_done(queue.claim(), Next(queue="other"))
    queue.mark_done(queue.claim(), Next(queue="other", delay=60))
    item = queue.claim()
    assert (queue.counts()["processing"], queue.counts()["pending"], other.counts()["pending"]) == (1, 0, 2)
    queue.mark_done(item, Next())
    assert (queue.counts()["pending"], sum(queue.counts().values())) == (1, 1)


def test_in_its_own_queue_it_stands_before_the_younger_of_its_group(queue):
    first, second = queue.enqueue_many(["first", "second"])
    queue.enqueue("a", group="g")
    queue.enqueue("b", group="g")
    assert [queue.claim().id for _ in range(2)] == [first, second]
    item = queue.claim()
    queue.mark_done(item, Next("a again"))
    again = queue.claim()
    assert (again.id, again.content) == (item.id, "a again")
    queue.mark_done(again, Next("away", queue="other"))
    assert queue.claim().content == "b"


def test_it_stands_by_its_id_in_the_group_of_the_other_queue(queue, open_queue):
    other = open_queue("other")
    queue.enqueue("old", group="g")
    other.enqueue("young", group="g")
    queue.mark_done(queue.claim(), Next(queue="other"))
    assert other.group_counts() == {"g": {"pending": 2, "processing": 0}}
    assert other.claim().content == "old"
    assert other.claim() is None


def test_a_stage_may_wait(queue, clock):
    id = queue.enqueue("x")
    queue.mark_done(queue.claim(), Next("later", delay=60))
    assert queue.claim() is None
    clock.advance(61)
    item = queue.claim()
    assert item.content == "later"
    queue.mark_done(item, Next("at once", run_at=clock.now - timedelta(days=1)))
    assert queue.claim().content == "at once"
    assert queue.get(id).run_at is None


def test_a_paused_queue_keeps_the_item_waiting(queue, open_queue):
    other = open_queue("other")
    other.pause()
    queue.enqueue("x")
    queue.mark_done(queue.claim(), Next(queue="other"))
    assert other.claim() is None
    other.resume()
    assert other.claim().content == "x"


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (lambda _: Next(object()), "object"),
        (lambda _: Next(float("nan")), "NaN"),
        (lambda _: Next("long", queue="small"), "PayloadTooLargeError"),
        (lambda queues: Next("no date", queue=queues["dates"]), "date"),
        (lambda _: Next("x", delay=1e12), "9999"),
    ],
)
def test_a_stage_that_cannot_be_stored_fails_the_attempt(queue, open_queue, stage, reason):
    queues = {"small": open_queue("small", max_bytes=3), "dates": open_queue("dates", type=date)}
    id = queue.enqueue("x")
    errors = []
    queue.drain(lambda _: stage(queues), on_error=lambda error, item, phase: errors.append(phase))
    item = queue.get(id)
    assert (item.status, item.stage, item.queue, item.content) == ("failed", 0, "ingest", "x")
    assert reason in item.error
    assert errors == ["handler"]
    queue.retry(id)
    claimed = queue.claim()
    with pytest.raises((TypeError, ValueError, PayloadTooLargeError)):
        queue.mark_done(claimed, stage(queues))
    assert queue.get(id).status == "processing"


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        Next(nonsense=1)
    with pytest.raises(ValueError, match="not both"):
        Next(delay=1, run_at=date.today())
    with pytest.raises(ValueError, match="group must not be empty"):
        Next(group="")
    with pytest.raises(TypeError, match="queue must be a name or a Queue"):
        Next(queue=5)
    with pytest.raises(TypeError, match="headers must be a dict"):
        Next(headers=[1])


def test_it_shows_what_it_changes():
    assert repr(Next({"a": 1}, queue="b", delay=5)) == "<Next {'a': 1}, queue='b', delay=5>"
    assert "secret" not in repr(Next("x" * 100 + "secret"))


def test_content_is_converted_by_the_type_of_the_queue_it_goes_into(open_queue):
    dates, texts = open_queue("dates", type=date), open_queue("texts")
    id = dates.enqueue(date(2026, 6, 14))
    dates.drain(lambda item: Next(item.content + timedelta(days=1)) if item.stage == 0 else Next("a text", queue=texts))
    item = texts.claim()
    assert item.content == "a text"
    assert dates.get(id).content == "a text"
    texts.mark_done(item, Next(date(2026, 6, 14), queue=dates))
    assert dates.claim().content == date(2026, 6, 14)


def test_each_item_of_a_batch_has_its_own_next_stage(queue, open_queue):
    queue.enqueue_many(["a", "b", "c"])
    with queue.claim() as one, queue.claim() as two, queue.claim() as three:
        queue.mark_done(one, Next(group="g", queue="grouped"))
        queue.mark_done(two, Next(group="g", queue="grouped"))
        queue.mark_done(three, Next(group="g", queue="grouped"))
    grouped = open_queue("grouped")

    def handler(items):
        if items[0].stage > 1:
            return None
        return [Next("a2", queue="elsewhere"), "result of b", Next("c2")]

    report = grouped.drain(handler, batch="group")
    assert (report.moved, report.done) == (2, 2)
    assert contents(open_queue("elsewhere")) == ["a2"]
    assert [(item.content, item.result) for item in grouped.items()] == [("b", "result of b"), ("c2", None)]


def test_a_bad_stage_in_a_batch_fails_its_item_and_releases_those_behind_it(open_queue):
    queue = open_queue("grouped")
    for content in "abc":
        queue.enqueue(content, group="g")
    report = queue.drain(lambda items: ["done", Next(object()), "done"], batch="group", limit=3)
    assert (report.done, report.failed, report.released) == (1, 1, 1)
    assert [item.status for item in queue.items()] == ["done", "failed", "pending"]


def test_loops_report_the_stage(queue):
    events = []
    queue.enqueue("x")
    queue.drain(lambda item: Next() if item.stage == 0 else None, progress=lambda event: events.append(event.kind))
    assert events == ["claimed", "moved", "claimed", "done"]


def test_middleware_sees_the_next_stage(queue):
    seen = []

    def middleware(item, call_next):
        result = call_next(item)
        seen.append(type(result))
        return result

    queue.enqueue("x")
    queue.drain(lambda item: Next() if item.stage == 0 else None, middleware=[middleware])
    assert seen == [Next, type(None)]


def test_a_registered_handler_makes_stages_and_items_of_its_queue(open_queue):
    orders = open_queue("orders")

    @orders.handler(name="ship")
    def ship(order: int, express: bool = False) -> str:
        return f"{order} {express}"

    @orders.handler
    def charge(order: int) -> str:
        if order == 0:
            raise GiveUp("no order")
        return ship.next(order, express=True)

    id = charge.enqueue(7)
    orders.worker().drain()
    assert orders.get(id).result == "7 True"
    assert orders.enqueue_many([ship.item(8), charge.item(order=9)]) == [id + 1, id + 2]
    orders.worker().drain()
    assert ship.queue.get(id + 1).result == "8 False"
    assert ship.options(delay=60, group="g").next(8).__class__ is Next
    with pytest.raises(TypeError, match="order"):
        ship.next("no number")


def test_a_stage_of_a_typed_queue_takes_one_value(open_queue):
    dates = open_queue("dates", type=date)

    @dates.handler
    def handle(day: date) -> date:
        return day if day.day > 15 else handle.next(day + timedelta(days=1))

    id = handle.enqueue(date(2026, 6, 14))
    assert dates.drain().moved == 2
    assert dates.get(id).result == "2026-06-16"


def test_in_asyncio(open_async_queue):
    async def main():
        async with open_async_queue() as queue, open_async_queue("ship") as ship:
            id = await queue.enqueue("x")
            assert (await queue.drain(async_next)).moved == 1
            item = await ship.claim()
            assert await ship.mark_done(item, Next("z", queue=queue))
            item = await queue.claim()
            await queue.mark_done(item, "end")
            return (await ship.get(id)), await queue.wait(id, timeout=5)

    async def async_next(item):
        return Next("y", queue="ship")

    seen, ended = asyncio.run(main())
    assert seen is None
    assert (ended.result, ended.content, ended.stage) == ("end", "z", 2)


def test_a_stage_that_fails_for_good_is_brought_back_from_home(open_queue):
    orders, ship = open_queue("orders"), open_queue("ship")
    id = orders.enqueue("x")
    orders.mark_done(orders.claim(), Next("stage two", queue="ship"))
    ship.mark_failed(ship.claim(), "no")
    assert [item.id for item in ship.failures()] == [id]
    assert orders.failures() == []
    assert open_queue("third").retry(id) is False
    assert orders.retry(id) is True
    item = ship.claim()
    assert (item.content, item.stage, item.retries) == ("stage two", 1, 0)


def test_an_item_is_cancelled_and_deleted_from_home_and_from_where_it_is(open_queue):
    orders, ship, third = open_queue("orders"), open_queue("ship"), open_queue("third")
    ids = orders.enqueue_many(["a", "b", "c", "d"])
    for _ in ids:
        orders.mark_done(orders.claim(), Next(queue="ship"))
    assert [third.cancel(ids[0]), orders.cancel(ids[0]), ship.cancel(ids[1])] == [False, True, True]
    assert [third.delete(ids[2]), orders.delete(ids[2]), ship.delete(ids[3])] == [False, True, True]
    assert [orders.get(id) and orders.get(id).status for id in ids] == ["cancelled", "cancelled", None, None]
    running = orders.enqueue("e")
    orders.mark_done(orders.claim(), Next(queue="ship"))
    item = ship.claim()
    assert orders.cancel(running) is True
    assert item.cancelled
    assert ship.mark_done(item) is False


def test_a_moved_item_is_not_replaced_by_its_key(open_queue):
    orders = open_queue("orders")
    id = orders.enqueue("x", key="k")
    orders.mark_done(orders.claim(), Next(queue="ship"))
    with pytest.raises(DuplicateItemError) as raised:
        orders.enqueue("y", key="k", on_duplicate="replace")
    assert raised.value.id == id
    assert open_queue("ship").get(id).content == "x"
