"""A chat of agents in asyncio: a writer drafts, a critic reviews, and who asked gets the answer.

    python chat.py serve             # the agents, until Ctrl-C or SIGTERM
    python chat.py ask ann "Why is the sky blue?"
    python chat.py cancel 7          # stop drafting

Each agent is a queue of `chat.db`. Messages of one person are a group: handled one at a time, in order, while other
people's messages run beside them.
"""

import asyncio
import math
import signal
import sys

from membox_queue import AsyncItem, AsyncQueue, Retry, RetryLater, new_key

FILE = "chat.db"
RETRY = Retry(max=5, base=1, cap=60)

writer = AsyncQueue(FILE, "writer")
critic = AsyncQueue(FILE, "critic")
inbox = AsyncQueue(FILE, "inbox")
"""What people are told; a group for each question."""


REFUSED: set[str] = set()


class BusyError(Exception):
    """The model wants to be asked later, as an HTTP 429 says it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


async def model(prompt: str):
    """Stands for a language model that streams its answer."""
    if "busy" in prompt and prompt not in REFUSED:
        REFUSED.add(prompt)
        raise BusyError(0.1)
    words = 100_000 if "endless" in prompt else 3
    for number in range(words):
        await asyncio.sleep(0.02)
        yield f"word{number}"


def once(item: AsyncItem) -> dict:
    """A key for what a handler sends: sent once, even if the handler runs again after a crash."""
    return {"key": f"{item.queue}-{item.id}", "key_ttl": math.inf}


async def write(item: AsyncItem) -> dict:
    draft = []
    try:
        async for word in model(item.content["question"]):
            await item.check()  # ends the handler once the item was cancelled
            draft.append(word)
            await item.set_progress(min(len(draft) / 3, 1.0), " ".join(draft[-3:]))
    except BusyError as busy:
        raise RetryLater(busy.seconds, count=False) from busy
    await critic.enqueue({**item.content, "draft": " ".join(draft)}, group=item.group, **once(item))
    return {"words": len(draft)}


async def review(item: AsyncItem) -> None:
    await asyncio.sleep(0.01)
    answer = f"{item.content['question']} → {item.content['draft']}"
    await inbox.enqueue(answer, group=item.content["asked"], **once(item))


async def serve() -> None:
    async with writer, critic, inbox:
        for queue in (writer, critic):
            await queue.configure(retry=RETRY)
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, stop)
        print("serving", flush=True)
        reports = await asyncio.gather(writer.work(write, concurrency=8), critic.work(review, concurrency=2))
    print(f"answered {reports[1].done}", flush=True)


def stop() -> None:
    """Claim nothing more, and let what runs end."""
    writer.stop()
    critic.stop()


async def ask(person: str, question: str) -> None:
    async with writer, inbox:
        asked = new_key(person)
        id = await writer.enqueue({"question": question, "asked": asked}, group=person, key=asked)
        print(f"asked as {id}", flush=True)
        written = await writer.wait(id)
        if written.status != "done":
            print(f"no answer: {written.error or written.status}")
            return
        item = await inbox.claim(group=asked, wait=60)
        if item is None:
            print("no answer yet: the critic takes its time")
            return
        async with item:  # done, and not told twice, once it is printed
            print(item.content)


async def cancel(id: int) -> None:
    async with writer:
        print("cancelled" if await writer.cancel(id) else "nothing to cancel")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case ["ask", person, question]:
            asyncio.run(ask(person, question))
        case ["cancel", id]:
            asyncio.run(cancel(int(id)))
        case _:
            sys.exit(__doc__)
