"""An order pipeline: charge → pack → ship, each a queue of its own, all served by one worker.

An order is one item from its beginning to its end: it moves from queue to queue and keeps its id and its key. The stock
and the parcels are plain tables in the same file, written by the transactions that move the order on. So a stage that
fails leaves nothing behind, and a program that dies at any line ships nothing twice. Start it twice: nothing is charged
again.
"""

import math
import sqlite3
from contextlib import closing

from membox_queue import GiveUp, Item, Queue, RetryLater, Worker

FILE = "orders.db"
TABLES = """
    CREATE TABLE IF NOT EXISTS stock (thing TEXT PRIMARY KEY, pieces INTEGER);
    CREATE TABLE IF NOT EXISTS parcels (number INTEGER PRIMARY KEY, customer TEXT, thing TEXT);
    INSERT OR IGNORE INTO stock VALUES ('lamp', 5), ('chair', 5);
"""
ORDERS = [
    ("ann", "lamp", 30, "4111"),
    ("ben", "chair", 90, "expired"),
    ("cid", "voucher", 20, "4222"),
    ("dan", "chair", 90, "4333"),
]

charging, packing, shipping = Queue(FILE, "charge"), Queue(FILE, "pack"), Queue(FILE, "ship")


def stand_in_for_the_bank(card: str, amount: int, once: str) -> str:
    """Stands for a payment service, which books a second call with the same `once` only once."""
    if card == "expired":
        raise GiveUp("the card has expired")
    return f"payment of {amount} from {card}"


def stand_in_for_the_printer(customer: str, attempt: int) -> None:
    """Stands for a label printer that jams once."""
    if customer == "dan" and attempt <= 2:  # the first attempt was the charge
        raise RetryLater(0, reason="the printer is jammed")


@charging.handler
def charge(item: Item[object], customer: str, thing: str, amount: int, card: str) -> dict[str, str]:
    """The first stage. A voucher is not packed: it branches off to the shipping at once."""
    payment = item.step("pay", stand_in_for_the_bank, card, amount, once=f"{item.id}-pay")
    print(f"charged  {customer}: {payment}", flush=True)
    return ship.next(customer, thing) if thing == "voucher" else pack.next(customer, thing)


@packing.handler
def pack(item: Item[object], customer: str, thing: str) -> None:
    """The second stage. The stock falls and the order moves on, or neither: also when the printer jams."""
    with closing(sqlite3.connect(FILE)) as connection, item.transaction(connection):
        connection.execute("UPDATE stock SET pieces = pieces - 1 WHERE thing = ?", [thing])
        stand_in_for_the_printer(customer, item.attempt)
        packing.mark_done(item, ship.next(customer, thing), connection=connection)
    print(f"packed   {customer}: {thing}", flush=True)


@shipping.handler
def ship(item: Item[object], customer: str, thing: str) -> None:
    """The last stage. Its result is the result of the order."""
    with closing(sqlite3.connect(FILE)) as connection, item.transaction(connection):
        sent = connection.execute("INSERT INTO parcels (customer, thing) VALUES (?, ?)", [customer, thing])
        shipping.mark_done(item, {"parcel": sent.lastrowid}, connection=connection)
    print(f"shipped  {customer}: {thing}", flush=True)


def main() -> None:
    with charging, packing, shipping, closing(sqlite3.connect(FILE)) as connection:
        connection.executescript(TABLES)
        for customer, thing, amount, card in ORDERS:
            once = charge.options(key=f"{customer}-{thing}", key_ttl=math.inf)
            once.enqueue(customer, thing, amount, card)
        print(Worker(FILE, {"charge": charge, "pack": pack, "ship": ship}).drain())
        for order in charging.items(home=True):  # all that began here, wherever they are now
            stages = " → ".join(attempt.queue for attempt in charging.history(order.id))
            print(f"{order.key}: {order.status} in {order.queue} ({stages}) {order.result or order.error}")
        print("stock:", dict(connection.execute("SELECT thing, pieces FROM stock ORDER BY thing")))


if __name__ == "__main__":
    main()
