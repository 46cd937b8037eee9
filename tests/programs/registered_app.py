"""An application with a registered handler."""

from membox_queue import Queue

queue = Queue("own.db")


@queue.handler(name="emails")
def send(to: str) -> str:
    return to.upper()
