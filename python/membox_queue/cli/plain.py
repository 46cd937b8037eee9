"""Items, attempts and schedules as plain values, and the one way to write JSON."""

import base64
import json
import sys
from datetime import datetime
from typing import Any

from membox_queue import _native
from membox_queue.legible import line

PREVIEW = 80


def put(value: Any) -> None:
    """Write one JSON document to stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=other) + "\n")


def other(value: Any) -> str:
    """What JSON has no form for."""
    if isinstance(value, datetime):
        return value.isoformat()
    return base64.b64encode(value).decode("ascii")


def brief(item: _native.Item) -> dict[str, Any]:
    """An item without what may be large."""
    return {
        "id": item.id,
        "queue": item.queue,
        "status": item.status,
        "preview": preview(item, PREVIEW),
        "source_path": item.source_path,
        "project": item.project,
        "doc_date": item.doc_date,
        "priority": item.priority,
        "group": item.group,
        "key": item.key,
        "attempt": item.attempt,
        "retries": item.retries,
        "error": item.error,
        "worker": item.worker,
        "progress": item.progress,
        "progress_note": item.progress_note,
        "enqueued_at": item.enqueued_at,
        "run_at": item.run_at,
        "started_at": item.started_at,
        "finished_at": item.finished_at,
    }


def whole(item: _native.Item, history: list[_native.Attempt]) -> dict[str, Any]:
    """An item with all that is known about it; bytes are written as base64."""
    fields = brief(item)
    del fields["preview"]
    kind = "text" if isinstance(item.content, str) else "base64" if isinstance(item.content, bytes) else "json"
    return {
        **fields,
        "max_retries": item.max_retries,
        "headers": item.headers,
        "content_type": kind,
        "content": item.content,
        "result": item.result,
        "history": [attempt_fields(attempt) for attempt in history],
    }


def attempt_fields(attempt: _native.Attempt) -> dict[str, Any]:
    """How one claim ended."""
    names = ("attempt", "ending", "worker", "started_at", "ended_at", "error")
    return {name: getattr(attempt, name) for name in names}


def schedule_fields(schedule: _native.Schedule) -> dict[str, Any]:
    """One schedule."""
    names = ("name", "content", "cron", "every", "tz", "next_at", "last_at", "last_id", "group", "priority")
    others = ("key", "max_retries", "project", "source_path", "doc_date", "headers")
    return {name: getattr(schedule, name) for name in names + others}


def preview(item: _native.Item | _native.Schedule, width: int) -> str:
    """The first words of an item's content."""
    content = item.content
    if isinstance(content, str):
        return line(content, width)
    if isinstance(content, bytes):
        return f"{len(content):,} bytes"
    return line(json.dumps(content, ensure_ascii=False), width)
