"""Handlers where nothing else is installed."""

import importlib.util
import time


def installed(item):
    return [name for name in ("typer", "rich", "pytest") if importlib.util.find_spec(name)]


def strict(item):
    if "bad" in item.content:
        raise ValueError("not this one")


def slow(item):
    print("began", flush=True)
    for _ in range(6000):  # in slices: a signal that comes just before a sleep does not end it
        time.sleep(0.1)
