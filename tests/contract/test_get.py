"""get: one item, as it is now."""

import pytest


def test_it_shows_the_item_as_it_is_now_and_stays_as_it_was_read(queue):
    qid = queue.enqueue("x")
    before = queue.get(qid)
    queue.claim()
    assert (before.status, queue.get(qid).status) == ("pending", "processing")


def test_what_is_not_in_this_queue_is_none(queue, open_queue):
    qid = queue.enqueue("x")
    with open_queue("mail") as mail:
        assert mail.get(qid) is None
    assert queue.get(99) is None
    assert queue.get(-1) is None


@pytest.mark.parametrize("qid", ["1", 1.0, None, True, 2**63])
def test_an_id_is_a_64_bit_int(queue, qid):
    with pytest.raises((TypeError, ValueError), match="id"):
        queue.get(qid)
