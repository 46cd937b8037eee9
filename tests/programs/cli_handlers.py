"""Handlers for the command line."""

import asyncio
import time


def digest(item):
    if "bad" in str(item.content):
        raise ValueError("the model said [red]no[/red]")
    return len(str(item.content))


def unstorable(item):
    return object()


async def awaited(item):
    await asyncio.sleep(0)
    return "awaited"


async def awaits_long(item):
    await asyncio.sleep(600)


def slow(item):
    item.set_progress(0.5, "half [b]way[/b]")
    for _ in range(6000):  # in slices: a signal that comes just before a sleep does not end it
        time.sleep(0.1)
