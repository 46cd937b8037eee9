"""pending: how many items wait or are being worked on."""


def test_waiting_delayed_and_claimed_items_are_pending_and_finished_ones_are_not(queue, open_queue):
    queue.enqueue_many(range(5))
    queue.mark_done(queue.claim())
    queue.mark_failed(queue.claim(), "boom")
    queue.claim()
    queue.enqueue("later", delay=60)
    with open_queue("mail") as mail:
        mail.enqueue("m")
    assert queue.pending() == 4
