"""A shop with FastAPI and SQLAlchemy: an order and its mail are committed together, and a worker sends the mails.

    uvicorn shop:app                                         # the shop, in this directory
    python -m membox_queue process shop:send_mail --watch    # a worker, in another terminal; or several

Orders and queue live in one file, `SHOP_DB` or `shop.db`. `env.py` is for Alembic: it leaves the queue's tables alone.
"""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from membox_queue import Item, Queue, Retry
from pydantic import BaseModel
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

FILE = os.path.abspath(os.environ.get("SHOP_DB", "shop.db"))
engine = create_engine(f"sqlite:///{FILE}")
queue = Queue(FILE, "mail")


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    total: Mapped[int]
    mail: Mapped[int | None]
    """The item of the queue that sends its mail."""


class Sent(Base):
    __tablename__ = "sent_mails"
    order_id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]


Base.metadata.create_all(engine)
queue.configure(retry=Retry(max=5, base=2), keep_for=7 * 86400)


@queue.handler
def send_mail(item: Item[object], order_id: int, customer: str) -> str:
    """Runs in the worker. It may run twice for one order, so it first looks whether the mail was sent."""
    with Session(engine) as session:
        if session.get(Sent, order_id):
            return "sent before"
    text = f"Dear {customer}, thank you for order {order_id}."
    if customer == "slow":  # the mail server takes its time; no transaction is open meanwhile
        while not os.path.exists(f"{FILE}.go"):
            item.check()
            time.sleep(0.05)
    with Session(engine) as session, session.begin():
        session.add(Sent(order_id=order_id, text=text))
    return "sent"


class NewOrder(BaseModel):
    customer: str
    total: int


def open_session() -> Iterator[Session]:
    with Session(engine) as session:
        yield session


Db = Annotated[Session, Depends(open_session)]


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    queue.close()


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
def place_order(new: NewOrder, session: Db) -> dict[str, int | None]:
    with session.begin():
        order = Order(customer=new.customer, total=new.total)
        session.add(order)
        session.flush()  # gives the order its id
        # In the same transaction: the mail is due if and only if the order exists. Waiting workers wake at the commit.
        mail = send_mail.options(connection=session).enqueue(order_id=order.id, customer=order.customer)
        order.mail = mail
        if new.total < 0:
            raise HTTPException(422, "the total is negative")  # neither order nor mail
        return {"order": order.id, "mail": mail}


@app.get("/orders/{id}")
def show_order(id: int, session: Db) -> dict[str, object]:
    order = session.get(Order, id)
    if order is None:
        raise HTTPException(404, "no such order")
    mail = queue.get(order.mail) if order.mail else None
    return {"customer": order.customer, "total": order.total, "mail": mail.status if mail else None}


@app.get("/health")
def health(session: Db) -> dict[str, object]:
    orders = len(session.scalars(select(Order.id)).all())
    return {"orders": orders, "note": queue.coverage_note(noun="mail"), "failed": queue.counts()["failed"]}
