"""A late worker whose row plain SQL has reset."""

import pytest

VERBS = {
    "mark_done": lambda queue, item: queue.mark_done(item, result="late"),
    "mark_done_many": lambda queue, item: queue.mark_done_many([item]) > 0,
    "mark_failed": lambda queue, item: queue.mark_failed(item, "late"),
    "mark_failed, for good": lambda queue, item: queue.mark_failed(item, "late", give_up=True),
    "extend": lambda queue, item: queue.extend(item, 600),
    "release": lambda queue, item: queue.release(item),
}


@pytest.fixture(params=VERBS)
def changes_nothing(request, engine):
    """Present a receipt through one of the verbs: it is refused, and no row of the table is different."""

    def changes_nothing(queue, item):
        before = engine.rows()
        assert VERBS[request.param](queue, item) is False
        assert engine.rows() == before

    return changes_nothing


def test_a_receipt_is_worth_nothing_when_membox_reset_the_row(queue, path, sql, changes_nothing):
    queue.enqueue("x")
    late = queue.claim()
    sql(path, "UPDATE ingest_queue SET status = 'pending', started_at = NULL WHERE status = 'processing'")
    changes_nothing(queue, late)
    sql(path, "UPDATE ingest_queue SET status = 'processing', started_at = datetime('now')")
    changes_nothing(queue, late)
