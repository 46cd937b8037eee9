"""What verbs take by name, for those who pass it on; the verbs themselves say what each option means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime, timedelta

    from membox_queue._native import ByContent, NewItem, Rate, Retry, _WithId
    from membox_queue.loops.plan import Middleware, OnError
    from membox_queue.loops.progress import Progress

    Seconds = float | timedelta
    Status = Literal["pending", "processing", "done", "failed", "blocked", "cancelled"]


class AnyDuplicateOptions(TypedDict, total=False):
    """The options of `DeliveryOptions` but for `on_duplicate`."""

    priority: int
    delay: Seconds | None
    run_at: datetime | None
    max_retries: int | None
    headers: dict[str, Any] | None
    group: str | None
    key: str | ByContent | None
    key_ttl: Seconds | None
    after: Iterable[int | _WithId | NewItem[Any]]
    if_failed: Literal["cancel", "run"]
    expires: Seconds | None
    connection: Any
    wait: Seconds
    spawn: str | None


class DeliveryOptions(AnyDuplicateOptions, total=False):
    """The options of `Queue.enqueue` but for those that say where the content is from."""

    on_duplicate: Literal["return", "raise", "replace"]


class SkipOptions(AnyDuplicateOptions, total=False):
    """The options of `Queue.enqueue` together with `on_duplicate="skip"`."""

    project: str | None
    source_path: str | os.PathLike[str] | None
    doc_date: str | date | None


class CallOptions(SkipOptions, total=False):
    """The options of a registered handler's next item."""

    on_duplicate: Literal["return", "raise", "replace", "skip"]


class EnqueueOptions(DeliveryOptions, total=False):
    """The options of `Queue.enqueue`."""

    project: str | None
    source_path: str | os.PathLike[str] | None
    doc_date: str | date | None


class ChildOptions(TypedDict, total=False):
    """The options of `Item.enqueue` but for `queue`."""

    project: str | None
    source_path: str | os.PathLike[str] | None
    doc_date: str | date | None
    priority: int
    delay: Seconds | None
    run_at: datetime | None
    max_retries: int | None
    headers: dict[str, Any] | None
    group: str | None
    key: str | ByContent | None
    key_ttl: Seconds | None
    on_duplicate: Literal["return", "raise", "replace", "skip"]
    after: Iterable[int | _WithId | NewItem[Any]]
    if_failed: Literal["cancel", "run"]
    expires: Seconds | None


class QueueSettings(TypedDict, total=False):
    """What `Queue.configure` stores."""

    lease: Seconds | None
    max_retries: int | None
    retry: Retry | None
    max_bytes: int | None
    group_limit: int | None
    max_pending: int | None
    rate: Rate | None
    group_rate: Rate | None
    keep_for: Seconds | None
    keep_last: int | None
    keep_failed_for: Seconds | None
    keep_content: bool | None


class QueueOptions(QueueSettings, total=False):
    """The options of `Queue`, but for `type`."""

    durability: Literal["full", "normal"]
    busy_timeout: Seconds
    worker: str | None


class ServedOptions(QueueOptions, total=False):
    """The options of one queue of a `Worker`."""

    type: Any


class WorkOptions(TypedDict, total=False):
    """The options of `Queue.work`, but for `batch`."""

    concurrency: int
    limit: int | None
    progress: Progress
    grace: Seconds
    max_runtime: Seconds | None
    middleware: Sequence[Middleware]
    on_error: OnError | None


class WorkerOptions(WorkOptions, total=False):
    """The options of a `Worker`, but for `batch`; the last two are for its `drain`."""

    retry_failed: bool
    linger: Seconds


class DrainOptions(WorkerOptions, total=False):
    """The options of `Queue.drain`, but for `batch`."""

    exclusive: bool


def inherited(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a queue opened by another queue shares with it."""
    return {name: options[name] for name in ("durability", "busy_timeout", "worker") if name in options}
