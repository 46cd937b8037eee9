"""Single keys from a terminal, without waiting for Enter."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

try:
    import select
    import termios
    import tty
except ImportError:  # Windows: Ctrl-C quits.
    termios = None  # type: ignore[assignment]


@contextlib.contextmanager
def listening() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits up to some seconds for a key, and returns it or an empty string."""
    if termios is None or not sys.stdin.isatty():
        yield sleep
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield lambda limit: sys.stdin.read(1) if select.select([sys.stdin], [], [], limit)[0] else ""
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def sleep(limit: float) -> str:
    """Wait where no key can be read."""
    time.sleep(limit)
    return ""
