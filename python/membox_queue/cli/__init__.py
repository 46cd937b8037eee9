"""The command line, `membox-queue`. It needs the extra `cli` (typer and rich); `process` works without."""

import sys


def main() -> None:
    """Run `membox-queue`, or exit with a message that says what to install."""
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
