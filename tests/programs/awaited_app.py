"""An application with a registered coroutine function."""

from membox_queue import AsyncQueue, Item

queue = AsyncQueue("own.db", "emails")


@queue.handler
async def send(to: str) -> str:
    return to.upper()


def odd(item: Item[complex]): ...
