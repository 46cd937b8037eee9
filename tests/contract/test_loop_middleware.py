"""Middleware around the handlers of a loop."""

from loops_in_threads import failing
from membox_queue import (
    DrainReport,
    GiveUp,
)


def test_middleware_goes_around_the_handler_in_the_order_of_the_list(queue):
    queue.enqueue("x")
    calls = []

    def layer(name):
        def around(item, call_next):
            calls.append(f"{name} {item.content}")
            result = call_next(item)
            calls.append(f"{name} saw {result}")
            return f"{name}({result})"

        return around

    queue.drain(lambda item: calls.append("handler") or "r", middleware=[layer("outer"), layer("inner")])
    assert calls == ["outer x", "inner x", "handler", "inner saw r", "outer saw inner(r)"]
    assert queue.get(1).result == "outer(inner(r))"


def test_middleware_may_answer_itself_catch_and_fail(queue):
    queue.enqueue_many(["answer", "catch", "fail"])

    def around(item, call_next):
        if item.content == "answer":
            return "answered"
        if item.content == "fail":
            raise GiveUp("by middleware")
        try:
            return call_next(item)
        except LookupError:
            return "caught"

    assert queue.drain(failing, middleware=[around]) == DrainReport(done=2, failed=1)
    assert [item.result for item in queue.items()] == ["answered", "caught", None]
    assert queue.get(3).error == "by middleware"
