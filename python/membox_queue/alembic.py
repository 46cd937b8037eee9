"""What Alembic needs to leave the queue's tables alone; use it in `env.py`. It imports nothing of Alembic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["include_name", "include_object"]


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, str | None]) -> bool:
    """Return whether Alembic may compare what it finds in the database: False for the queue's tables.

    For `context.configure(include_name=include_name)`. Indexes and triggers go with their tables, and Alembic does not
    compare views.
    """
    return not (type_ == "table" and is_ours(name))


def include_object(item: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Return whether Alembic may compare an object: False for the queue's tables, and for a model of them.

    For `context.configure(include_object=include_object)`, beside `include_name`. It is needed only if the metadata of
    the application has a `Table` or a model for a table of the queue, which Alembic would otherwise create.
    """
    return not (type_ == "table" and is_ours(name))


def is_ours(name: str | None) -> bool:
    """Return whether a table belongs to the queue."""
    return name is not None and (name == "ingest_queue" or name.startswith("membox_queue_"))
