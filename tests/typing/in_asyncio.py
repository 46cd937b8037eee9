"""The same in asyncio."""

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from membox_queue import AsyncItem, AsyncQueue, DrainReport, Item, NewItem


@dataclass
class Doc:
    title: str


async def plain() -> None:
    async with AsyncQueue("memory.db", "emails", lease=30) as queue:
        assert_type(queue, AsyncQueue[Any])
        assert_type(await queue.enqueue("text", delay=5), int)
        assert_type(await queue.claim(), AsyncItem[Any] | None)
        assert_type(await queue.counts(), dict[str, int])
        assert_type(await queue.retry(1), bool)
        assert_type(await queue.retry(key="k"), bool)
        assert_type(await queue.retry([1, 2]), int)
        assert_type(await queue.replay(1), int | None)
        assert_type(await queue.replay(status="done"), int)
        assert_type(await queue.wait(key="k"), Item[Any] | Any)


async def embed(item: AsyncItem[Doc]) -> int:
    return len(item.content.title)


def in_a_thread(item: Item[Doc]) -> int:
    return len(item.content.title)


async def of_text(item: AsyncItem[str]) -> None: ...


async def of_group(items: list[AsyncItem[Doc]]) -> None: ...


async def typed() -> None:
    queue = AsyncQueue("memory.db", type=Doc)
    assert_type(queue, AsyncQueue[Doc])
    assert_type(AsyncQueue[Doc]("memory.db"), AsyncQueue[Doc])
    assert_type(await queue.enqueue(Doc("t"), priority=3), int)
    assert_type(await queue.enqueue_many([Doc("t"), NewItem(Doc("t"))]), list[int | Any])
    item = await queue.claim(wait=5)
    assert_type(item, AsyncItem[Doc] | None)
    if item:
        async with item:
            assert_type(item.content, Doc)
            assert_type(item.id, int)
            assert_type(item.group, str | None)
            assert_type(await item.set_progress(0.5), bool)
        assert_type(await queue.mark_done(item), bool)
        assert_type(await queue.release(item, connection=object()), bool)
        async with item.transaction(object()) as the_same:
            assert_type(the_same, AsyncItem[Doc])
    async for each in queue:
        assert_type(each, AsyncItem[Doc])
        break
    assert_type(await queue.claim_many(2), list[AsyncItem[Doc]])
    assert_type(await queue.get(1), Item[Doc] | None)
    assert_type(await queue.items(), list[Item[Doc]])
    assert_type(await queue.wait(1), Item[Doc] | Any)
    assert_type(await queue.drain(embed, concurrency=4), DrainReport)
    assert_type(await queue.drain(in_a_thread), DrainReport)
    assert_type(await queue.work(of_group, batch="group", grace=timedelta(seconds=5)), DrainReport)
    async with contextlib.aclosing(aiter(queue)) as items:
        async for each in items:
            assert_type(each, AsyncItem[Doc])
    seconds = timedelta(seconds=5)
    assert_type(await queue.claim(wait=seconds, lease=seconds), AsyncItem[Doc] | None)
    assert_type(await queue.claim_group(wait=seconds, group="coder"), list[AsyncItem[Doc]])
    assert_type(await queue.wait(1, timeout=seconds), Item[Doc] | Any)
    async with queue.lock("nightly", ttl=seconds, wait=seconds):
        await queue.configure(lease=seconds)

    assert_type(await queue.work(embed, limit=1, grace=5), DrainReport)

    await queue.enqueue("text")  # type: ignore[call-overload]
    await queue.enqueue(Doc("t"), priority="high")  # type: ignore[call-overload]
    await queue.drain(of_text)  # type: ignore[arg-type]
    await queue.drain(of_group)  # type: ignore[arg-type]
    await queue.drain(embed, batch="group")  # type: ignore[call-overload]
    await queue.drain(embed, concurency=4)  # type: ignore[call-overload]
    await queue.drain(embed, stays=True)  # type: ignore[call-overload]
    await queue.work(embed, linger=4)  # type: ignore[call-overload]
    await queue.configure(leese=30)  # type: ignore[call-arg]
    await queue.enqueue_file("notes.md", prio=5)  # type: ignore[call-arg]
    AsyncQueue("memory.db", leese=3)  # type: ignore[call-overload]


async def handlers() -> None:
    queue = AsyncQueue("memory.db")

    @queue.handler
    async def send(to: str, body: str = "") -> int:
        return len(to + body)

    @queue.handler(name="docs")
    async def index(item: AsyncItem[object], doc: Doc) -> str:
        await item.set_progress(0.5)
        return doc.title

    assert_type(await send.enqueue("ann", body="hello"), int)
    assert_type(await send("ann"), int)
    assert_type(await send.options(delay=30).enqueue("ann"), int | Any)
    assert_type(await index.enqueue(Doc("t")), int)
    assert_type(await queue.drain(), DrainReport)
    assert_type(await queue.drain(send), DrainReport)

    await send.enqueue(1)  # type: ignore[arg-type]
    await index.enqueue()  # type: ignore[call-arg]
