"""Fork just after a loop was left: ADDRESS."""

import asyncio
import os
import signal
import sys

from membox_queue import AsyncQueue

queue = AsyncQueue(sys.argv[1])


async def main():
    async for _ in queue:
        break
    return os.fork()


child = asyncio.run(main())
if child == 0:
    signal.alarm(20)
    asyncio.run(queue.enqueue("child"))
    os._exit(0)
print(os.waitpid(child, 0)[1])
