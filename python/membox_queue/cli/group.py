"""Groups of commands: options that stand before the command mean the same as behind it."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

BEFORE = {"db": "--db", "queue": "--queue", "as_json": "--json"}
"""The options that may stand before a command, by the names of their parameters."""

Db = Annotated[str | None, typer.Option("--db", metavar="FILE", help="The SQLite file.")]
Name = Annotated[str | None, typer.Option("--queue", metavar="NAME", help="The name of the queue.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write only JSON.")]


class Group(TyperGroup):
    """A group that hands its options on to the command; one that the command does not have is left out."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, and put the options that stood before it in front of its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        known = {option for param in getattr(command, "params", ()) for option in param.opts}
        given: list[str] = []
        for param, option in BEFORE.items():
            value = ctx.params.get(param)
            if value and (option in known or not known):
                given += [option] if value is True else [option, value]
        return name, command, [*given, *rest]


def take_options(db: Db = None, queue: Name = None, as_json: AsJson = False) -> None:
    """Take the options that stand before a command; `Group` hands them on."""
