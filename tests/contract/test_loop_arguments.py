"""What a loop is given: refused before anything is claimed, in every loop alike."""

import asyncio
import functools
from datetime import timedelta

import pytest
from membox_queue import AsyncQueue, DrainReport, Worker


def drain(queue, address, handler, **plan):
    return queue.drain(handler, **plan)


def work(queue, address, handler, **plan):
    return queue.work(handler, **{"limit": 1, **plan})


def asynchronously(queue, address, handler, **plan):
    async def scenario():
        async with AsyncQueue(address) as same:
            return await same.work(handler, **{"limit": 1, **plan})

    return asyncio.run(scenario())


def in_a_thread(queue, address, handler, **plan):
    worker = Worker(address, {"ingest": handler}, **{"limit": 1, **plan})
    worker.start()
    queue.wait(1, timeout=30)
    return worker.stop()


@pytest.fixture(params=[drain, work, asynchronously, in_a_thread])
def loop(request):
    return request.param


async def awaited(item):
    return None


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (lambda: None, r"handler is called with the item; .*too many positional"),
        (lambda item, connection: None, r"handler is called with the item; .*'connection'"),
        ("package.module:handler", "handler must be callable, not str"),
    ],
)
def test_a_handler_that_cannot_take_an_item_fails_no_item(queue, address, loop, handler, words):
    queue.enqueue("x")
    with pytest.raises(TypeError, match=words):
        loop(queue, address, handler)
    assert queue.counts()["pending"] == 1


@pytest.mark.parametrize(
    "handler",
    [
        lambda item, connection=None: None,
        lambda *items: None,
        functools.partial(lambda connection, item: None, None),
        print,
    ],
)
def test_whatever_can_take_an_item_is_a_handler(queue, address, loop, handler):
    queue.enqueue("x")
    assert loop(queue, address, handler).done == 1


def test_a_decorator_that_gives_more_than_the_item_is_taken_at_its_word(queue):
    def with_connection(function):
        @functools.wraps(function)
        def inner(item):
            return function(item, "connection")

        return inner

    queue.enqueue("x")
    assert queue.drain(with_connection(lambda item, connection: connection)) == DrainReport(done=1)


@pytest.mark.parametrize(
    ("plan", "error", "words"),
    [
        ({"concurrency": 0}, ValueError, "concurrency must be between 1 and 10000"),
        ({"concurrency": 10**9}, ValueError, "concurrency must be between 1 and 10000"),
        ({"concurrency": "2"}, TypeError, "concurrency"),
        ({"limit": 0}, ValueError, "limit must be at least 1"),
        ({"grace": -1}, ValueError, "grace must be"),
        ({"grace": None}, TypeError, "grace must be seconds or a timedelta"),
        ({"grace": "1"}, TypeError, "grace must be seconds or a timedelta"),
        ({"max_runtime": "5"}, TypeError, "max_runtime must be"),
        ({"max_runtime": -1}, ValueError, "max_runtime must be"),
        ({"batch": True}, ValueError, "batch must be"),
        ({"progress": "yes"}, TypeError, "progress must be True or a callable"),
        ({"on_error": 5}, TypeError, "on_error must be callable"),
        ({"on_error": lambda error: None}, TypeError, "on_error is called with the exception, the item, the phase"),
        ({"middleware": print}, TypeError, "middleware must be a list"),
        ({"middleware": [5]}, TypeError, "middleware must be callable"),
        ({"middleware": [lambda item: None]}, TypeError, "middleware is called with the item, what calls the next"),
        ({"concurency": 4}, TypeError, "unexpected keyword argument 'concurency'"),
        ({"stays": True}, TypeError, "unexpected keyword argument 'stays'"),
        ({"lease_ttl": 1}, TypeError, "unexpected keyword argument 'lease_ttl'"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(queue, address, loop, plan, error, words):
    queue.enqueue("x")
    with pytest.raises(error, match=words):
        loop(queue, address, lambda item: None, **plan)
    assert (queue.get(1).status, queue.get(1).attempt) == ("pending", 0)
    assert not queue.worker_is_alive()


@pytest.mark.parametrize(("linger", "error"), [(-1, ValueError), ("1", TypeError)])
def test_a_linger_that_makes_no_sense_is_refused(queue, linger, error):
    queue.enqueue("x")
    with pytest.raises(error, match="linger must be"):
        queue.drain(lambda item: None, linger=linger)
    assert queue.get(1).attempt == 0


@pytest.mark.parametrize(
    ("loop", "option"),
    [(loop, option) for loop in (work, asynchronously) for option in ("linger", "exclusive", "retry_failed")]
    + [(in_a_thread, "exclusive")],
)
def test_what_only_a_drain_knows_is_refused_by_the_loops_that_stay(queue, address, loop, option):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        loop(queue, address, lambda item: None, **{option: 1})


def test_a_grace_may_be_a_timedelta(queue, address, loop):
    queue.enqueue("x")
    assert loop(queue, address, lambda item: None, grace=timedelta(seconds=5)).done == 1


def test_a_worker_that_cannot_begin_says_so_at_its_start_and_may_be_started_again(address, queue):
    queue.enqueue("x")
    worker = Worker(address, {"ingest": awaited})
    with pytest.raises(TypeError, match="use AsyncQueue"):
        worker.start()
    assert worker.stop() is None
    worker.handlers["ingest"] = lambda item: None
    assert worker.drain().done == 1


@pytest.mark.parametrize("handlers", [[print], {"ingest"}, print])
def test_the_handlers_of_a_worker_are_a_dict(address, handlers):
    with pytest.raises(TypeError, match="handlers must be a dict, from queue names to handlers"):
        Worker(address, handlers)
