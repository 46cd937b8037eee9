"""A handler whose module is imported only when a gate opens."""

import os
import time
from pathlib import Path

here = Path(__file__).parent
(here / "importing").write_text(str(os.getpid()))
while not (here / "gate").exists():
    time.sleep(0.005)


def handler(item):
    return os.getpid()
