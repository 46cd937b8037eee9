"""What tests of asyncio share: an event loop a test, waiting inside it, and exceptions that are hard to report."""

import asyncio
import functools
import time

import pytest


def in_loop(test):
    """Run a coroutine test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments, **fixtures):
        asyncio.run(asyncio.wait_for(test(*arguments, **fixtures), 60))

    return run


async def becomes(ask):
    """Let the event loop run until the answer is true."""
    deadline = time.monotonic() + 30
    while not (answer := ask()):
        assert time.monotonic() < deadline, "waited too long"
        await asyncio.sleep(0.002)
    return answer


async def cancelled(task):
    """Cancel a task and wait for its end."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def nothing(item):
    """Handle an item by doing nothing."""


class PanicException(BaseException):
    """As native code raises it that panics: no `Exception`."""


class HostileError(Exception):
    """Every attribute that a report could ask for raises."""

    def refuse(self, *_):
        raise LookupError("no attribute for you")

    __str__ = __repr__ = add_note = with_traceback = refuse
    __class__ = __cause__ = __context__ = __traceback__ = __notes__ = property(refuse)
