"""A recurring item: a feed that is read every two seconds, by an item that enqueues its own successor.

Start it as often as you like, even at the same time: there is one such item, because of its key. The successor is
written by the transaction that ends the item, so that the feed is neither forgotten nor read twice. A read that fails
is tried again, and the next one is planned only when it has succeeded. The program ends after three reads.
"""

import sys

from membox_queue import Item, Queue, Retry

FILE = "recurring.db"
EVERY = 2.0
READS = 3


def read(number: int) -> str:
    """Stands for what may fail."""
    return f"entry {number}"


def feed(item: Item) -> dict[str, str]:
    """Read the feed once, hand the entry over, and plan the next time."""
    entry = item.step("read", read, item.content)
    item.enqueue(entry, queue="entries")
    item.enqueue(item.content + 1, key=item.key, delay=EVERY)
    print(f"read {entry}", flush=True)
    return {"entry": entry}


def main() -> None:
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else READS
    with Queue(FILE, "feeds", retry=Retry(base=1)) as feeds, Queue(FILE, "entries") as entries:
        feeds.enqueue(1, key="feed", on_duplicate="skip")
        feeds.work(feed, limit=limit)
        found = entries.drain(lambda item: print(f"indexed {item.content}", flush=True))
        print(f"{found.done} entries; the next read is planned for {feeds.get(key='feed').run_at:%H:%M:%S}")


if __name__ == "__main__":
    main()
