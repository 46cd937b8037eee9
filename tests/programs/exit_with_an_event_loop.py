"""Exit with an event loop under way: ADDRESS HOW."""

import asyncio
import math
import sys

from membox_queue import AsyncQueue

queue = AsyncQueue(sys.argv[1])


async def handler(item): ...
async def main():
    waits = [queue.claim(wait=math.inf), queue.work(handler, concurrency=2), anext(aiter(queue))]
    main.tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.sleep(0.1)


loop = asyncio.new_event_loop()
loop.run_until_complete(main())
print("leaving", flush=True)
if sys.argv[2] == "closed":
    for task in main.tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*main.tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
