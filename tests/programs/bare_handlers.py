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
    time.sleep(600)
