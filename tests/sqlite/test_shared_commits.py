"""Threads that share a transaction each have an answer of their own; what is rolled back never reaches the log."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from membox_queue import DuplicateItemError, NewItem, Queue, QueueFullError

THREADS = 8
EACH = 40


def together(count, work):
    """Run `work(number)` in threads that begin at the same moment; what each returned or raised."""
    barrier, answers = threading.Barrier(count), [None] * count

    def run(number):
        barrier.wait()
        try:
            answers[number] = work(number)
        except Exception as error:
            answers[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def test_each_thread_gets_the_ids_of_its_own_items(queue):
    answers = together(THREADS, lambda number: [queue.enqueue(f"{number}-{turn}") for turn in range(EACH)])
    ids = [id for answer in answers for id in answer]
    assert sorted(ids) == list(range(1, THREADS * EACH + 1))
    for number, answer in enumerate(answers):
        assert [queue.get(id).content for id in answer] == [f"{number}-{turn}" for turn in range(EACH)]


def test_one_that_is_refused_takes_nobody_along(queue):
    def work(number):
        refused = 0
        for turn in range(EACH):
            try:
                queue.enqueue_many(
                    [f"{number}-{turn}", NewItem("twin", key="taken" if turn % 2 else None, on_duplicate="return")]
                    if number % 2
                    else [NewItem("mine", key="taken", on_duplicate="raise"), f"lost-{number}-{turn}"]
                )
            except DuplicateItemError:
                refused += 1
        return refused

    queue.enqueue("first", key="taken")
    answers = together(THREADS, work)
    assert answers == [0 if number % 2 else EACH for number in range(THREADS)]
    contents = Counter(item.content for item in queue.items(limit=10_000))
    assert contents["mine"] == 0
    assert not any(str(content).startswith("lost") for content in contents)
    assert all(contents[f"{number}-{turn}"] == 1 for number in range(1, THREADS, 2) for turn in range(EACH))


def test_a_full_queue_is_full_for_whoever_comes_too_late(path):
    with Queue(path, max_pending=50) as queue:
        answers = together(THREADS * 10, lambda number: queue.enqueue(number))
        assert sum(isinstance(answer, int) for answer in answers) == 50
        assert sum(isinstance(answer, QueueFullError) for answer in answers) == THREADS * 10 - 50
        assert queue.pending() == 50


def test_every_item_is_claimed_and_finished_once_by_threads_that_share_commits(queue):
    queue.enqueue_many(range(THREADS * EACH))

    def work(number):
        mine = []
        while item := queue.claim():
            assert queue.mark_done(item, result=number)
            mine.append(item.id)
        return mine

    answers = together(THREADS, work)
    assert sorted(id for answer in answers for id in answer) == list(range(1, THREADS * EACH + 1))
    assert queue.counts()["done"] == THREADS * EACH


@pytest.mark.parametrize("size", [10, 340_000, 350_000, 360_000, 380_000, 3_000_000])
def test_what_was_rolled_back_does_not_come_over_what_others_committed(path, sql, size):
    """Large enough, a transaction spills into the log before it ends; its frames must not be written later."""
    with Queue(path, durability="normal", max_pending=5) as queue:
        for turn in range(4):
            with pytest.raises(QueueFullError):
                queue.enqueue_many(["x" * size] * 6)
            sql(path, "INSERT INTO ingest_queue (content, queue) VALUES (?, 'other')", f"theirs {turn}")
            queue.enqueue(f"ours {turn}")
        assert [item.content for item in queue.items()] == [f"ours {turn}" for turn in range(4)]
    assert sql(path, "SELECT content FROM ingest_queue WHERE queue = 'other' ORDER BY id") == [
        [f"theirs {turn}"] for turn in range(4)
    ]
    assert sql(path, "PRAGMA integrity_check") == [["ok"]]


def test_a_reader_of_the_same_transaction_sees_what_is_held_back(path):
    """A batch longer than the page cache reads its own frames back from the log."""
    with Queue(path, durability="normal") as queue:
        documents = [f"{number}" * 200_000 for number in range(40)]
        queue.enqueue_many([NewItem(document, key=f"k{number % 10}") for number, document in enumerate(documents)])
        assert queue.pending() == 10
        assert [item.content for item in queue.items()] == documents[:10]
