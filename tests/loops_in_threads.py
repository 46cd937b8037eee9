"""What tests of loops in threads share: simple handlers, and the end of a loop that runs beside the test."""


def ended(queue, future):
    """Stop a loop that has begun and return its report."""
    queue.stop()
    return future.result(30)


def nothing(item):
    """Handle an item by doing nothing."""


def failing(item):
    raise LookupError(item.content)
