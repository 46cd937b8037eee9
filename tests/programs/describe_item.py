"""What a pool of processes does with the copy of an item."""


def describe(item):
    return item.id, item.content, item.attempt, item.headers, item.lost, item.cancelled, item.stopping
