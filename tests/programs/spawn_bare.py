"""Spawn a worker and wait for its result, in the working directory."""

import sys

from membox_queue import Queue

with Queue("memory.db") as queue:
    id = queue.enqueue("x", spawn="bare_handlers:installed")
    item = queue.wait(id, timeout=60)
    print(item.status, item.result, sorted({"typer", "rich"} & sys.modules.keys()))
