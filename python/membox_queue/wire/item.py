"""Items, attempts, schedules and workers as plain values, and the one way to write JSON."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from membox_queue.terminal_text import line

if TYPE_CHECKING:
    from membox_queue import _native

PREVIEW = 80
"""Characters of a content that lists show."""


def to_json(value: Any) -> str:
    """Return one JSON document: times in ISO 8601, bytes in base64."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=without_json_form)


def without_json_form(value: Any) -> str:
    """Return the text for a value that JSON has no form for."""
    if isinstance(value, datetime):
        return value.isoformat()
    return base64.b64encode(value).decode("ascii")


def brief(item: _native.Item) -> dict[str, Any]:
    """Return an item without what may be large."""
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
        "expires_at": item.expires_at,
        "parent": item.parent,
        "home": item.home,
        "stage": item.stage,
    }


def whole(item: _native.Item, history: list[_native.Attempt]) -> dict[str, Any]:
    """Return an item with its content, result and history."""
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
    """Return how one claim ended."""
    names = ("attempt", "ending", "queue", "stage", "worker", "started_at", "ended_at", "error", "content")
    return {name: getattr(attempt, name) for name in names}


def schedule_fields(schedule: _native.Schedule) -> dict[str, Any]:
    """Return one schedule."""
    names = ("name", "content", "cron", "every", "tz", "next_at", "last_at", "last_id", "group", "priority")
    others = ("key", "max_retries", "project", "source_path", "doc_date", "headers")
    return {name: getattr(schedule, name) for name in names + others}


def worker_fields(worker: _native.WorkerInfo) -> dict[str, Any]:
    """Return one worker."""
    names = ("name", "pid", "host", "since", "kind", "queues", "item_ids", "alive", "stopping")
    return {name: getattr(worker, name) for name in names}


def preview(item: _native.Item | _native.Schedule, width: int) -> str:
    """Return the first words of an item's content."""
    content = item.content
    if isinstance(content, str):
        return line(content, width)
    if isinstance(content, bytes):
        return f"{len(content):,} bytes"
    return line(json.dumps(content, ensure_ascii=False), width)
