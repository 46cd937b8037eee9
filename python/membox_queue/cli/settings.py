"""configure: the stored settings of a queue, as people type them."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Annotated, Any

import typer

from membox_queue import Rate, Retry
from membox_queue.cli import screen
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, existing
from membox_queue.cli.options import AsJson, Db, Name
from membox_queue.cli.spans import UNITS, seconds
from membox_queue.cli.usage import UsageError
from membox_queue.wire.settings import to_json


def configure(
    settings: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE", help="The settings to store.")] = None,
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show the settings of the queue, or store some for all processes; NAME= removes one."""
    changes = dict(read(setting) for setting in settings or ())
    with existing(db, queue) as opened:
        if changes:
            opened.configure(**changes)
        held = {name: opened.options[name] for name in READERS}
    if as_json:
        screen.write_json(dict.fromkeys(READERS) | to_json(held))
    else:
        screen.show(screen.table(["setting", "*value"], [[name, shown(value)] for name, value in held.items()]))


def read(setting: str) -> tuple[str, Any]:
    """Return one setting and its value; None if it is to be removed."""
    name, mark, typed = setting.partition("=")
    name = name.strip().replace("-", "_")
    if not mark or name not in READERS:
        raise UsageError(f"{setting!r} is not a setting; write NAME=VALUE with one of {', '.join(READERS)}")
    try:
        return name, READERS[name](typed.strip()) if typed.strip() else None
    except (TypeError, ValueError, ArgumentTypeError) as error:
        raise UsageError(f"{name} cannot be {typed!r}; write it like {name}={EXAMPLES[READERS[name]]}") from error


def flag(typed: str) -> bool:
    """Yes or no."""
    if typed.lower() not in ("yes", "no", "true", "false"):
        raise ValueError("neither yes nor no")
    return typed.lower() in ("yes", "true")


def rate(typed: str) -> Rate:
    """Read a number per time: `60/1m`."""
    count, _, per = typed.partition("/")
    return Rate(int(count), per=seconds(per))


def retry(typed: str) -> Retry:
    """A policy by the names of its arguments: `max=5 base=30s`."""
    given: dict[str, Any] = dict(part.split("=", 1) for part in typed.replace(",", " ").split())
    kinds: dict[str, Any] = {"max": int, "base": seconds, "cap": seconds, "factor": float, "jitter": float}
    return Retry(**{name: kinds.get(name, str)(value) for name, value in given.items()})


READERS: dict[str, Callable[[str], Any]] = {
    "lease": seconds,
    "max_retries": int,
    "retry": retry,
    "max_bytes": int,
    "max_pending": int,
    "rate": rate,
    "group_rate": rate,
    "group_limit": int,
    "keep_for": seconds,
    "keep_last": int,
    "keep_failed_for": seconds,
    "keep_content": flag,
}
EXAMPLES: dict[Any, str] = {seconds: "30s", int: "5", retry: "'max=5 base=30s'", rate: "60/1m", flag: "no"}


def shown(value: Any) -> str:
    """A value as it could be typed."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return span(value)
    if isinstance(value, Rate):
        return f"{value.count}/{span(value.per)}"
    if isinstance(value, Retry):
        times = f"max={value.max} base={span(value.base)} cap={span(value.cap)}"
        return f"{times} factor={value.factor:g} jitter={value.jitter:g} kind={value.kind}"
    return str(value)


def span(value: float) -> str:
    """Seconds in the largest unit of which they are a whole number."""
    units = sorted(((count, unit) for unit, count in UNITS.items() if unit), reverse=True)
    count, unit = next(((count, unit) for count, unit in units if value and value % count == 0), (1, "s"))
    return f"{value / count:.15g}{unit}"
