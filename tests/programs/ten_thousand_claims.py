"""Let very many claims wait at once in asyncio: ADDRESS MANY."""

import asyncio
import os
import sys

from membox_queue import AsyncQueue, Queue

address, many = sys.argv[1], int(sys.argv[2])


async def main():
    async with AsyncQueue(address, durability="normal") as queue:
        await queue.pending()
        threads = len(os.listdir("/proc/self/task"))
        in_order = []

        async def claim(number):
            item = await queue.claim(wait=60)
            in_order.append(number)
            return item.content

        tasks = [asyncio.create_task(claim(number)) for number in range(many)]
        while not queue._queue or await queue.pending():
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        # Some leave before anything comes, and some just when it comes: a wake-up they had goes on to the next.
        for task in tasks[:10]:
            task.cancel()
        with Queue(address) as producer:
            await asyncio.to_thread(producer.enqueue_many, range(25))
            for task in tasks[10:20]:
                task.cancel()
            for number in range(25, 50):
                await asyncio.to_thread(producer.enqueue, number)
        while len(in_order) < 50:
            await asyncio.sleep(0.005)
        more = len(os.listdir("/proc/self/task")) - threads
        for task in tasks:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        got = [answer for answer in answers if not isinstance(answer, asyncio.CancelledError)]
        print(sorted(got) == list(range(50)), (await queue.counts())["processing"], max(in_order) < 100, more)


asyncio.run(main())
