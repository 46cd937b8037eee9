"""Wait for very many items at once in asyncio: ADDRESS MANY."""

import asyncio
import os
import sys
from pathlib import Path

from membox_queue import AsyncQueue

address, many = sys.argv[1], int(sys.argv[2])
FINISH_ONE = Path(__file__).with_name("finish_one.py")


def cost():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


async def main():
    async with AsyncQueue(address, durability="normal") as queue:
        ids = await queue.enqueue_many(range(many))
        before = cost()
        waits = [asyncio.create_task(queue.wait(id)) for id in ids]
        claims = [asyncio.create_task(queue.claim(group="nothing", wait=60)) for _ in range(many)]
        # The last one to begin has been looked at: its item has ended before.
        ended = await queue.enqueue("x", priority=9)
        await queue.mark_done(await queue.claim())
        await queue.wait(ended)
        assert not any(task.done() for task in waits + claims)
        threads, descriptors = (now - then for now, then in zip(cost(), before, strict=True))
        assert threads <= 10, threads
        assert descriptors <= 50, descriptors
        other = await asyncio.create_subprocess_exec(sys.executable, FINISH_ONE, address)
        assert await other.wait() == 0
        assert (await waits[0]).result == "other"
        await queue.drain(lambda item: item.content * 2)
        items = await asyncio.gather(*waits)
        assert [item.id for item in items] == ids
        assert [item.result for item in items[1:]] == [2 * number for number in range(1, many)]
        threads, descriptors = (now - then for now, then in zip(cost(), before, strict=True))
        for task in claims:
            task.cancel()
        print(len(await asyncio.gather(*claims, return_exceptions=True)), threads <= 40, descriptors <= 50)


asyncio.run(main())
