"""status and top: a queue at a glance, once or live."""

import time
from collections import deque
from typing import Annotated, Any

import typer

from membox_queue.cli import keys, overview, screen
from membox_queue.cli.opening import DEFAULT_DB, DEFAULT_NAME, known
from membox_queue.cli.options import AsJson, Db, Name, time_span
from membox_queue.queue import Queue
from membox_queue.wire import overview as wire_overview


def status(db: Db = DEFAULT_DB, queue: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Show counts, ages, the workers, items in progress, and the latest failures."""
    with known(db, queue) as opened:
        seen = wire_overview.look(opened)
    if as_json:
        screen.write_json(seen)
    else:
        screen.show(*overview.lines(seen))


def top(
    db: Db = DEFAULT_DB,
    queue: Name = DEFAULT_NAME,
    every: Annotated[float, typer.Option(parser=time_span, metavar="TIME", help="Refresh interval.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the status of the queue live; press q to quit. In a pipe, and with --json, it is printed once."""
    with known(db, queue) as opened:
        if as_json:
            screen.write_json(wire_overview.look(opened))
        elif once or not screen.console().is_terminal:
            screen.show(*overview.lines(wire_overview.look(opened)))
        else:
            watch(opened, max(0.1, every))


def watch(queue: Queue, every: float) -> None:
    """Show the queue until the user quits."""
    from rich.console import Group
    from rich.live import Live

    pace = Pace()
    with keys.listening() as pressed, Live(console=screen.console(), screen=True, auto_refresh=False) as live:
        try:
            while True:
                seen = wire_overview.look(queue, failures=8, running=12)
                foot = screen.text(f"{pace.of(seen['counts'])}press q to quit", "dim")
                live.update(Group(*overview.lines(seen), "", foot), refresh=True)
                if pressed(every) in ("q", "Q", "\x1b"):
                    return
        except KeyboardInterrupt:
            return


class Pace:
    """How many items end in a minute, measured over the last minute."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, int]] = deque(maxlen=600)

    def of(self, counts: dict[str, Any]) -> str:
        """Add the present counts, and return the pace in words."""
        self.seen.append((time.monotonic(), counts["done"] + counts["failed"]))
        while self.seen[-1][0] - self.seen[0][0] > 60:
            self.seen.popleft()
        (then, before), (by_now, ended) = self.seen[0], self.seen[-1]
        if by_now - then < 1 or ended <= before:
            return ""
        return f"{(ended - before) / (by_now - then) * 60:,.0f} items a minute · "
