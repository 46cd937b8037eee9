"""item.step: what a handler does once, by name, whatever becomes of its attempts."""

import asyncio

import pytest
from membox_queue import Next, PayloadTooLargeError, Retry, RetryLater, StaleClaimError


def failing_until(attempt):
    """Fail the first attempts of an item."""

    def fail(item):
        if item.attempt < attempt:
            raise RetryLater(0)

    return fail


@pytest.mark.parametrize("value", [None, 0, "text", [1, {"a": None}], {"deep": [True, 1.5]}, False, ""])
def test_a_step_runs_once_over_three_attempts_and_its_value_comes_back_equal(queue, value):
    calls, values = [], []
    fail = failing_until(3)

    def handler(item):
        values.append(item.step("ask", lambda *given, **named: calls.append((given, named)) or value, 1, a=2))
        fail(item)
        return "end"

    id = queue.enqueue("x")
    assert queue.drain(handler).done == 1
    assert calls == [((1,), {"a": 2})]
    assert values == [value] * 3
    assert [type(each) for each in values] == [type(value)] * 3
    assert queue.get(id).attempt == 3


def test_every_attempt_gets_the_value_as_json_gives_it_back(queue):
    values = []
    fail = failing_until(2)

    def handler(item):
        values.append(item.step("pair", lambda: (1, 2)))
        fail(item)

    queue.enqueue("x")
    queue.drain(handler)
    assert values == [[1, 2], [1, 2]]


def test_a_step_that_raises_is_not_recorded_and_the_ones_before_it_are(queue):
    calls = []

    def second(item):
        calls.append("second")
        if item.attempt == 1:
            raise LookupError("no")

    def handler(item):
        item.step("first", calls.append, "first")
        item.step("second", second, item)

    queue.configure(retry=Retry(base=0))
    queue.enqueue("x")
    report = queue.drain(handler)
    assert (report.done, report.postponed) == (1, 1)
    assert calls == ["first", "second", "second"]


def test_a_retry_by_a_person_keeps_the_steps(queue):
    calls = []

    def handler(item):
        item.step("ask", calls.append, "asked")
        if item.attempt == 1:
            raise LookupError

    id = queue.enqueue("x")
    queue.drain(handler)
    assert queue.get(id).status == "failed"
    queue.retry(id)
    assert queue.drain(handler).done == 1
    assert calls == ["asked"]


def test_a_name_twice_in_one_attempt_is_an_error(queue):
    queue.enqueue("x")
    with queue.claim() as item:
        item.step("ask", lambda: 1)
        for again in (
            lambda: item.step("ask", lambda: 2),
            lambda: item.sleep("ask", 1),
            lambda: item.gather("ask", []),
        ):
            with pytest.raises(ValueError, match=r"\"ask\" is used twice"):
                again()


def test_a_name_of_another_kind_is_an_error(queue):
    queue.enqueue("x")
    item = queue.claim()
    item.step("ask", lambda: 1)
    queue.release(item)
    with queue.claim() as item, pytest.raises(ValueError, match=r"recorded as a step .* and is a sleep now"):
        item.sleep("ask", 5)


def test_the_same_name_in_another_stage_is_fresh(queue):
    calls = []

    def handler(item):
        item.step("ask", calls.append, item.stage)
        return Next() if item.stage < 2 else None

    queue.enqueue("x")
    queue.drain(handler)
    assert calls == [0, 1, 2]


def test_steps_may_be_added_removed_and_reordered_between_attempts(queue):
    calls = []
    queue.enqueue("x")
    for names in (["a", "b"], ["c", "b"], ["b", "a", "d", "c"]):
        item = queue.claim()
        for name in names:
            item.step(name, calls.append, name)
        queue.release(item)
    assert calls == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("result", "error"),
    [(object(), TypeError), ({1: 2}, TypeError), (float("nan"), ValueError), ("x" * 100, PayloadTooLargeError)],
)
def test_a_result_that_cannot_be_kept_is_an_error_that_names_the_step(open_queue, result, error):
    queue = open_queue("small", max_bytes=50)
    queue.enqueue("x")
    item = queue.claim()
    with pytest.raises(error, match="ask the model"):
        item.step("ask the model", lambda: result)
    queue.release(item)
    assert queue.claim().step("ask the model", lambda: "fine") == "fine"


@pytest.mark.parametrize("name", ["", "x" * 300, 5, None])
def test_an_impossible_name_is_refused_before_the_function_is_called(queue, name):
    queue.enqueue("x")
    calls = []
    with queue.claim() as item, pytest.raises((TypeError, ValueError)):
        item.step(name, calls.append, 1)
    assert calls == []


def test_a_late_holder_records_no_step(queue, clock):
    queue.enqueue("x")
    late = queue.claim(lease=1)
    clock.advance(2)
    second = queue.claim()
    with pytest.raises(StaleClaimError) as raised:
        late.step("ask", lambda: "late")
    assert raised.value.id == late.id
    assert second.step("ask", lambda: "second") == "second"


def test_after_the_end_there_are_no_steps(queue):
    queue.enqueue("x")
    item = queue.claim()
    queue.mark_done(item)
    with pytest.raises(StaleClaimError):
        item.step("ask", lambda: 1)


def test_an_item_that_was_only_read_has_no_steps(queue):
    with pytest.raises(ValueError, match="only read"):
        queue.get(queue.enqueue("x")).step("ask", lambda: 1)


def test_a_coroutine_function_is_refused_where_nothing_awaits_it(queue):
    async def ask():
        return 1

    queue.enqueue("x")
    with queue.claim() as item, pytest.raises(TypeError, match="must be awaited"):
        item.step("ask", ask)


@pytest.mark.filterwarnings("error")
def test_in_asyncio_plain_and_coroutine_functions_run_once(open_async_queue):
    calls = []

    async def ask(value, *, more):
        await asyncio.sleep(0)
        calls.append(("ask", value, more))
        return {"answer": value}

    def plain(value):
        calls.append(("plain", value))

    async def handler(item):
        first = await item.step("ask", ask, 1, more=2)
        second = await item.step("plain", plain, 3)
        if item.attempt < 3:
            raise RetryLater(0)
        with pytest.raises(ValueError, match="twice"):
            await item.step("ask", ask, 1, more=2)
        with pytest.raises(TypeError, match='"bad"'):
            await item.step("bad", object)
        return [first, second]

    async def main():
        async with open_async_queue() as queue:
            id = await queue.enqueue("x")
            await queue.drain(handler)
            return await queue.get(id)

    item = asyncio.run(main())
    assert (item.result, item.attempt) == ([{"answer": 1}, None], 3)
    assert calls == [("ask", 1, 2), ("plain", 3)]
