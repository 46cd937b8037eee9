"""Fork after an AsyncQueue was used, and use it in the child: ADDRESS."""

import asyncio
import os
import signal
import sys

from membox_queue import AsyncQueue

queue = AsyncQueue(sys.argv[1])
asyncio.run(queue.enqueue("parent"))
child = os.fork()
if child == 0:
    signal.alarm(20)
    asyncio.run(queue.enqueue("child"))
    asyncio.run(queue.close())
    os._exit(0)
print(os.waitpid(child, 0)[1])
asyncio.run(queue.enqueue("parent"))
