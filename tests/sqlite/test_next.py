"""Next in the file: counts and groups as triggers keep them, and what plain SQL sees."""

from membox_queue import NewItem, Next


def moved_about(queue, open_queue):
    """Move items within and between queues and groups; leave some in every place."""
    queue.enqueue_many([NewItem(n, group=f"g{n % 3}" if n % 4 else None) for n in range(24)])
    queues = [queue, open_queue("b"), open_queue("c")]
    stages = [Next(), Next(queue="b"), Next(queue="c", group=None), Next(queue="ingest", group="g1"), Next(delay=60)]
    for turn in range(40):
        source = queues[turn % 3]
        if item := source.claim():
            source.mark_done(item, stages[turn % len(stages)] if turn % 7 else None)
    return queues


def test_counts_are_those_of_the_rows(queue, open_queue, path, sql):
    for each in moved_about(queue, open_queue):
        rows = sql(path, f"SELECT status, count(*) FROM ingest_queue WHERE queue = '{each.name}' GROUP BY status")
        assert {status: count for status, count in each.counts().items() if count} == dict(rows)
        groups = sql(
            path,
            f"SELECT group_key, sum(status = 'pending'), sum(status = 'processing') FROM ingest_queue "
            f"WHERE queue = '{each.name}' AND group_key IS NOT NULL AND status IN ('pending', 'processing') GROUP BY 1",
        )
        expected = {group: {"pending": pending, "processing": processing} for group, pending, processing in groups}
        assert each.group_counts() == expected


def test_one_item_of_each_group_stands_in_front(queue, open_queue, path, sql):
    moved_about(queue, open_queue)
    wrong = sql(
        path,
        "SELECT queue, group_key, count(*) FROM ingest_queue WHERE group_key IS NOT NULL "
        "AND (status = 'processing' OR (status = 'pending' AND behind = 0 AND (run_at IS NULL OR attempt > 0))) "
        "GROUP BY 1, 2 HAVING count(*) <> 1",
    )
    assert wrong == []


def test_home_is_stored_once_the_item_has_left_it(queue, path, sql):
    queue.enqueue("x")
    queue.mark_done(queue.claim(), Next("same queue"))
    assert sql(path, "SELECT home, queue, stage FROM ingest_queue") == [[None, "ingest", 1]]
    queue.mark_done(queue.claim(), Next(queue="b"))
    assert sql(path, "SELECT home, queue, stage FROM ingest_queue") == [["ingest", "b", 2]]


def test_what_another_program_stored_as_bytes_goes_on(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (content) VALUES (x'00ff')")
    queue.mark_done(queue.claim(), Next(headers={"h": 1}))
    item = queue.claim()
    assert (item.content, item.headers, item.stage) == (b"\x00\xff", {"h": 1}, 1)


def test_nothing_is_left_of_an_item_that_is_gone(queue, path, sql):
    id = queue.enqueue("x")
    queue.mark_done(queue.claim(), Next("y"))
    queue.delete(id)
    assert sql(path, "SELECT count(*) FROM membox_queue_history") == [[0]]


def test_a_stage_has_a_checksum_of_its_own(queue, path, sql):
    queue.enqueue("x", headers={"h": 1})
    sums = sql(path, "SELECT checksum FROM ingest_queue")
    for change in ({"content": "y"}, {"headers": {"h": 2}}, {"content": "z", "headers": None}):
        queue.mark_done(queue.claim(), Next(**change))
        sums += sql(path, "SELECT checksum FROM ingest_queue")
    assert None not in [checksum for (checksum,) in sums]
    assert len({checksum for (checksum,) in sums}) == 4


def test_the_steps_of_a_stage_are_gone_with_it(queue, path, sql):
    queue.enqueue("x")
    item = queue.claim()
    item.step("ask", lambda: "large")
    queue.mark_done(item, Next())
    assert sql(path, "SELECT count(*) FROM membox_queue_steps") == [[0]]
