"""coverage_note: the foot of a query's answer while items are still to come."""


def test_it_counts_what_is_still_to_come_and_is_absent_when_nothing_is(queue):
    assert queue.coverage_note() is None
    queue.enqueue("a")
    assert queue.coverage_note() == "1 ingest pending — results may be incomplete"
    queue.enqueue_many(["b", "c"])
    item = queue.claim()
    assert queue.coverage_note() == "3 ingests pending — results may be incomplete"
    queue.mark_failed(item, "boom")
    assert queue.coverage_note() == "2 ingests pending — results may be incomplete"
    queue.mark_done_many(queue.claim_many(2))
    assert queue.coverage_note() is None


def test_the_noun_can_be_chosen(queue):
    assert queue.coverage_note(noun="order") is None
    queue.enqueue("a")
    assert queue.coverage_note(noun="order") == "1 order pending — results may be incomplete"
    assert queue.coverage_note("query", "queries") == "1 query pending — results may be incomplete"
    queue.enqueue("b")
    assert queue.coverage_note(noun="order") == "2 orders pending — results may be incomplete"
    assert queue.coverage_note("query", "queries") == "2 queries pending — results may be incomplete"
