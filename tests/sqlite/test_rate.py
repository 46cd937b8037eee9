"""Rates and the rows that keep count of them."""

from membox_queue import NewItem, Queue, Rate


def fill(queue, *groups):
    queue.enqueue_many(NewItem(f"{group}{number}", group=group) for number in range(1, 6) for group in groups)


def test_an_item_that_cannot_be_read_uses_nothing_up(path, sql):
    with Queue(path, rate=Rate(1, per=60)) as queue:
        sql(path, "INSERT INTO ingest_queue (content, content_type) VALUES ('{', 'json'), ('fine', 'text')")
        assert queue.claim().content == "fine"
        assert queue.get(1).status == "failed"


def test_a_held_group_lets_nothing_through_whoever_writes(path, clock, sql):
    with Queue(path, group_rate=Rate(1, per=60)) as queue:
        fill(queue, "a")
        queue.mark_done(queue.claim())
        sql(path, "INSERT INTO ingest_queue (content, group_key) VALUES ('plain', 'a')")
        sql(path, "UPDATE ingest_queue SET status = 'pending' WHERE id = 1")
        sql(path, "DELETE FROM ingest_queue WHERE id = 2")
        assert queue.claim() is None
        clock.advance(60)
        assert queue.claim().content == "a1"


def test_what_was_counted_is_forgotten_after_its_period(path, clock, sql):
    with Queue(path, rate=Rate(100, per=60), group_rate=Rate(3, per=30), group_limit=9, keep_for=1) as queue:
        queue.enqueue_many(NewItem("x", group=f"g{number}") for number in range(90))
        queue.mark_done_many(queue.claim_many(90))
        assert sql(path, "SELECT count(*) FROM membox_queue_starts") == [[180]]
        clock.advance(61)
        queue.claim()
        queue.tend()
        assert sql(path, "SELECT count(*) FROM membox_queue_starts") == [[0]]
        assert sql(path, "SELECT count(*) FROM membox_queue_holds") == [[0]]


def test_only_as_many_claims_are_remembered_as_matter(path, clock, sql):
    with Queue(path, rate=Rate(3, per=0.001), durability="normal") as queue:
        queue.enqueue_many(range(50))
        for _ in range(50):
            clock.advance(0.01)
            assert queue.claim() is not None
        assert sql(path, "SELECT count(*) FROM membox_queue_starts")[0][0] <= 3


def take(queue, limit=99, **options):
    return [item.content for item in queue.claim_many(limit, **options)]


def test_a_rate_holds_in_memory_too(clock):
    with Queue(":memory:", rate=Rate(2, per=60)) as queue:
        queue.enqueue_many(range(5))
        assert take(queue) == [0, 1]
