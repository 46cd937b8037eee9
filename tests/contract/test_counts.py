"""counts: how many items of the queue stand in each status."""


def test_every_status_is_there_also_with_nothing_in_it(queue):
    assert queue.counts() == dict.fromkeys(["pending", "processing", "done", "failed", "blocked", "cancelled"], 0)


def test_items_are_counted_where_they_stand_and_only_those_of_this_queue(queue, open_queue):
    queue.enqueue_many(range(12))
    queue.mark_done_many(queue.claim_many(4))
    for item in queue.claim_many(3):
        queue.mark_failed(item, "boom")
    queue.claim_many(2)
    queue.enqueue("later", delay=60)
    assert queue.cancel(10)
    open_queue("mail").enqueue("m")
    assert queue.counts() == {"pending": 3, "processing": 2, "done": 4, "failed": 3, "blocked": 0, "cancelled": 1}
