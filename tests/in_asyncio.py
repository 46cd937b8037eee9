"""What tests of asyncio share: an event loop for each test, and waiting inside it."""

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
