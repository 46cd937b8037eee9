"""Close a queue whose event loop has ended: ADDRESS HOW."""

import asyncio
import os
import sys

from membox_queue import AsyncQueue

queue = AsyncQueue(sys.argv[1])
events = asyncio.new_event_loop()


async def handler(item):
    events.stop()
    await asyncio.Event().wait()


working = events.create_task(queue.work(handler))  # noqa: RUF006
events.run_forever()
if sys.argv[2] == "closed":
    events.close()
asyncio.run(asyncio.wait_for(queue.close(), 20))
print("closed", flush=True)
os._exit(0)
