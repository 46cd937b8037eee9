"""Run a loop in asyncio whose handlers wait for a gate: ADDRESS VERB KIND GATE."""

import asyncio
import signal
import sys
import time
from pathlib import Path

from membox_queue import AsyncQueue

address, verb, kind, gate = sys.argv[1:]


async def coroutine(item):
    print("handling\n", end="", flush=True)
    while not Path(gate).exists():
        await asyncio.sleep(0.005)


def plain(item):
    print("handling\n", end="", flush=True)
    while not Path(gate).exists():
        time.sleep(0.005)


async def main():
    async with AsyncQueue(address) as queue:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.stop)
        try:
            print(await getattr(queue, verb)({"coroutine": coroutine, "plain": plain}[kind], concurrency=2), flush=True)
        except asyncio.CancelledError:
            print("in process:", (await queue.counts())["processing"], flush=True)
            raise


asyncio.run(main())
