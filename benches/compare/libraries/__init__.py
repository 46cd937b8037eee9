"""The libraries, one adapter a file; those that are not installed are left out."""

from __future__ import annotations

import importlib
import importlib.metadata
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare.adapter import Adapter

BASE = "sqlite3"
"""The library that ratios refer to."""
OURS = "membox_queue"

MODULES = {
    BASE: "stdlib",
    "honker": "honker",
    "localqueue": "localqueue",
    "litequeue": "litequeue",
    "persist-queue": "persist_queue",
    "huey": "huey",
    OURS: "membox",
    "membox_queue, keep_for=0": "membox:REMOVING",
}


def load(name: str) -> type[Adapter]:
    """Import one adapter by the library's name. Raises ImportError when the library is not installed."""
    module, _, attribute = MODULES[name].partition(":")
    adapter: type[Adapter] = getattr(importlib.import_module(f"compare.libraries.{module}"), attribute or "LIBRARY")
    return adapter


def load_installed(names: list[str]) -> tuple[dict[str, type[Adapter]], list[str]]:
    """Load the adapters that can be loaded; the messages say which cannot."""
    found, skipped = {}, []
    for name in names:
        try:
            found[name] = load(name)
        except ImportError as error:
            skipped.append(f"{name} is skipped, it is not installed ({error}): pip install '.[bench]'")
    return found, skipped


def version(library: type[Adapter]) -> str:
    if library.distribution is None:
        return f"SQLite {sqlite3.sqlite_version}"
    return importlib.metadata.version(library.distribution)
