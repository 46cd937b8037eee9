"""The command line, `membox-queue`. It needs the extra `cli`, typer and rich; `process` alone needs nothing else."""

import sys


def main() -> None:
    """Run `membox-queue`, or tell how to get it."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.exit(
            "membox-queue needs typer and rich: pip install 'membox-queue[cli]' "
            "(python -m membox_queue process HANDLER works without)"
        )
    from membox_queue.cli.app import app

    app(prog_name="membox-queue")
