"""The log of a worker: lines for people, or a JSON object a line."""

import io
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
TEXT = "%(asctime)s %(levelname)s %(message)s"
STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; everything else was given as `extra`."""


class PresentStderr(io.TextIOBase):
    """The stderr of the moment of writing: a live bar replaces sys.stderr."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stderr.flush()


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON, with its extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        fields |= {name: value for name, value in vars(record).items() if name not in STANDARD}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def configure(level: str | None, kind: str) -> None:
    """Log to stderr. By default from INFO on; at a terminal, where a bar shows the rest, from WARNING on."""
    if level is None:
        level = "warning" if sys.stderr.isatty() else "info"
    logging.basicConfig(format=TEXT, level=level.upper(), stream=PresentStderr())
    if kind == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())
