"""A text file as the arguments of `enqueue`: its text, path, project and date."""

from __future__ import annotations

import math
import os
from datetime import date
from pathlib import Path
from typing import Any

from membox_queue.errors import PayloadTooLargeError

CHUNK = 1 << 20
"""Bytes of a file that are read in one call."""


def document(path: str | os.PathLike[str], limit: float = math.inf) -> dict[str, Any]:
    """Return content, source_path, project and doc_date of a text file, by the names of `enqueue`."""
    file = Path(path).resolve(strict=True)
    try:
        content = read_within(file, limit).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}); enqueue its bytes instead") from error
    day = date.fromtimestamp(file.stat().st_mtime)
    return {"content": content, "source_path": file, "project": project_of(file), "doc_date": day}


def read_within(file: Path, limit: float) -> bytes:
    """Return the bytes of a file. A file above the limit is refused by its size; a device or a pipe has none."""
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        content = bytearray()
        while size <= limit and len(content) <= limit:
            # The file may grow meanwhile, and one without end is not read to its end.
            chunk = opened.read(int(min(limit + 1 - len(content), CHUNK)))
            if not chunk:
                return bytes(content)
            content += chunk
    many = f"{size}" if size > limit else f"more than {limit}"
    advice = "store large bodies elsewhere and keep a reference, or raise max_bytes"
    error = PayloadTooLargeError(f"{file} has {many} bytes, the limit is {limit}; {advice}")
    error.size, error.limit = size if size > limit else None, int(limit)
    raise error


def project_of(file: Path) -> str:
    """Return the name of the enclosing git repository, else of the directory."""
    for directory in file.parents:
        if (directory / ".git").exists():
            return directory.name
    return file.parent.name
