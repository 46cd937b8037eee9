"""Wrong arguments: refused by type or value, and nothing is written."""

from datetime import UTC, date, datetime

import pytest
from membox_queue import NewItem, Queue

RECORDING = {
    "mark_done": lambda queue, item: queue.mark_done(item),
    "mark_failed": lambda queue, item: queue.mark_failed(item, "x"),
    "release": lambda queue, item: queue.release(item),
    "extend": lambda queue, item: queue.extend(item, 60),
}


@pytest.fixture(params=RECORDING)
def record(request):
    return RECORDING[request.param]


@pytest.mark.parametrize("wrong", [1, "1", None, {"id": 1}, object()])
def test_only_items_can_be_recorded(queue, record, wrong):
    queue.enqueue("x")
    item = queue.claim()
    with pytest.raises(TypeError, match=rf"Item that claim\(\) returned.*not {type(wrong).__name__}"):
        record(queue, wrong)
    assert not item.lost
    assert queue.get(1).status == "processing"


def test_an_item_that_was_only_read_is_refused_with_advice(queue, record):
    queue.enqueue("x")
    queue.claim()
    for read in (queue.get(1), *queue.items()):
        with pytest.raises(ValueError, match=r"only read.*claim\(\)"):
            record(queue, read)
    assert queue.get(1).status == "processing"


def test_an_item_of_another_queue_or_database_is_refused(queue, record, open_queue, engine):
    queue.enqueue("x")
    held = queue.claim()
    with open_queue("mail") as mail, Queue(engine.other_address) as other:
        other.enqueue("y")
        for stranger in (mail, other):
            with pytest.raises(ValueError, match="another queue"):
                record(stranger, held)
        assert other.counts()["pending"] == 1
    assert record(queue, held)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"project": 5}, TypeError),
        ({"project": "\ud800"}, ValueError),
        ({"source_path": 5}, TypeError),
        ({"source_path": "\ud800"}, ValueError),
        ({"doc_date": 5}, TypeError),
        ({"priority": "high"}, TypeError),
        ({"priority": 1.5}, TypeError),
        ({"priority": True}, TypeError),
        ({"priority": 2**63}, ValueError),
        ({"delay": -1}, ValueError),
        ({"delay": float("nan")}, ValueError),
        ({"delay": float("inf")}, ValueError),
        ({"delay": 10**400}, ValueError),
        ({"delay": 253_000_000_000}, ValueError),
        ({"delay": "5"}, TypeError),
        ({"run_at": datetime(2026, 6, 14)}, ValueError),
        ({"run_at": date(2026, 6, 14)}, TypeError),
        ({"run_at": 1781431200}, TypeError),
        ({"run_at": datetime(2026, 6, 14, tzinfo=UTC), "delay": 5}, ValueError),
        ({"max_retries": -1}, ValueError),
        ({"max_retries": 2**32}, ValueError),
        ({"max_retries": 1.0}, TypeError),
        ({"colour": "red"}, TypeError),
    ],
)
def test_enqueue_refuses_options_that_make_no_sense(queue, options, error):
    with pytest.raises(error):
        queue.enqueue("x", **options)
    assert queue.items() == []


@pytest.mark.parametrize("wait", [-1, float("nan"), "5", 10**400])
def test_a_wait_is_a_number_of_seconds(queue, wait):
    queue.enqueue("x")
    with pytest.raises((TypeError, ValueError), match="wait"):
        queue.claim(wait=wait)
    assert queue.counts()["pending"] == 1


@pytest.mark.parametrize("lease", [0, -1, 0.0001, float("inf"), "60"])
def test_a_claim_lasts_longer_than_nothing(queue, lease):
    queue.enqueue("x")
    with pytest.raises((TypeError, ValueError), match="lease"):
        queue.claim(lease=lease)
    assert queue.counts()["pending"] == 1


@pytest.mark.parametrize("verb", ["retry", "replay", "run_now", "cancel", "delete", "get", "history", "wait"])
def test_who_gives_an_item_for_its_id_is_told_what_to_give(queue, verb):
    queue.enqueue("x")
    with pytest.raises(TypeError, match="id must be an int, not Item; pass its id"):
        getattr(queue, verb)(queue.get(1))


def test_a_new_item_is_for_batches(queue):
    with pytest.raises(TypeError, match="element of enqueue_many"):
        queue.enqueue(NewItem("x"))
