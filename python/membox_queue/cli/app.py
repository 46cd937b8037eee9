"""The commands of `membox-queue`."""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from membox_queue.cli import file, group, ingest, listing, process, repair, schedule, settings, status
from membox_queue.cli.usage import errors_in_one_line

HELP = """\
A durable work queue inside an SQLite file.

  Put in   ingest              enqueue documents
  Work     process             handle what is due, then exit; --watch stays
  See      status, top         counts, workers, failures: once, or live
           list, show          items, or one in full
           failures            what failed, and why
  Repair   retry, replay       return failed items to pending; enqueue copies
           cancel, answer      end items; end one with a result of your own
           run-now, delete     end a delay; remove items by id
           purge, prune        remove all of one status, or what ended long ago
           pause, resume       stop all claims; allow them again
  Set up   schedule            enqueue an item repeatedly
           configure           settings that hold for all processes
  File     backup, compact     copy the file; free its unused space
           doctor, remove      find what is wrong; take the queue out
           demo                see it survive a kill, in eight seconds

Options: --db FILE (else MEMBOX_QUEUE_DB, else memory.db), --queue NAME (else
ingest), --json, --version, --help; COMMAND --help shows those of a command.
Exit codes: 0 done, 1 not possible or not healthy, 2 wrong usage, 3 items
failed, 130 interrupted.
"""
"""All commands by what they are for, in 24 lines of 80 columns."""


class Commands(group.Group):
    """All commands; none of them shows a traceback for a wrong input."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was given."""
        with errors_in_one_line():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the overview; a line for each command would not fit a terminal."""
        formatter.write(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n{HELP}")


class Unparsed(TyperCommand):
    """A command that reads its arguments itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave them as they are."""
        ctx.args = args
        return args


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def version(asked: bool) -> None:
    """Show the version and exit."""
    if asked:
        from membox_queue.wire.health import versions

        typer.echo("membox-queue {}, SQLite {}".format(*versions()))
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
    db: group.Db = None,
    queue: group.Name = None,
    as_json: group.AsJson = False,
) -> None:
    """A durable work queue inside an SQLite file."""


app.command()(ingest.ingest)


@app.command("process", cls=Unparsed, help=process.SUMMARY)
def run_process(context: typer.Context) -> None:
    """Run a worker."""
    raise typer.Exit(process.main(context.args, context.command_path))


app.command()(status.status)
app.command()(status.top)
app.command("list")(listing.list_items)
app.command()(listing.show)
app.command()(listing.failures)
app.command()(repair.retry)
app.command()(repair.replay)
app.command()(repair.cancel)
app.command()(repair.answer)
app.command()(repair.delete)
app.command()(repair.purge)
app.command()(repair.prune)
app.command()(repair.pause)
app.command()(repair.resume)
app.command()(repair.run_now)
app.add_typer(schedule.app, name="schedule")
app.command()(settings.configure)
app.command()(file.compact)
app.command()(file.backup)
app.command()(file.remove)
app.command()(file.doctor)
app.command()(file.demo)
