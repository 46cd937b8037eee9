"""An application with a coroutine function and a plain function for several queues."""

import threading

from membox_queue import AsyncQueue

queue = AsyncQueue("own.db")


@queue.handler
async def digest(text: str) -> str:
    return text.upper()


@queue.handler(name="mail")
def send(to: str) -> str:
    assert threading.current_thread() is not threading.main_thread()
    return to.upper()
