"""Content that is no longer what was enqueued is never delivered; what somebody changes on purpose is."""

from __future__ import annotations

import sqlite3

import apsw
import pytest
from membox_queue import BY_CONTENT, NewItem, Queue, Retry

DAMAGE = {
    "content": ("content", "'wrong'"),
    "one byte": ("content", "'documenu'"),
    "bytes for text": ("content", "x'646f63756d656e74'"),
    "no content": ("content", "''"),
    "type": ("content_type", "'base64'"),
    "headers": ("headers", '\'{"from":"b"}\''),
    "no headers": ("headers", "NULL"),
    "checksum": ("checksum", "checksum + 1"),
    "no number for a checksum": ("checksum", "'x'"),
}


@pytest.fixture
def rot(path):
    """Change stored values as damage does: without a trigger that would notice."""

    def rot(column, value, table="ingest_queue"):
        connection = apsw.Connection(str(path))
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.execute(f"UPDATE {table} SET {column} = {value}")
        connection.close()

    return rot


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_content_is_not_delivered_and_comes_to_rest_as_failed(queue, rot, case):
    damaged = queue.enqueue("document", headers={"from": "a"})
    rot(*DAMAGE[case])
    good = queue.enqueue("good")
    assert queue.claim().id == good
    item = queue.get(damaged)
    assert item.status == "failed"
    assert "does not match its checksum" in item.error
    assert queue.retry_failed() == 0


def test_the_raw_text_is_kept_for_people_to_read(queue, rot):
    queue.enqueue("document")
    rot("content", "'docXment'")
    assert queue.get(1).content == "docXment"
    assert queue.claim() is None
    assert [item.content for item in queue.items(status="failed")] == ["docXment"]


def test_a_policy_does_not_bring_damaged_content_back(path, rot):
    with Queue(path, retry=Retry(max=5, base=0)) as queue:
        queue.enqueue("document")
        rot("content", "'wrong'")
        assert queue.claim() is None
        assert queue.claim() is None
        assert (queue.get(1).status, queue.get(1).retries) == ("failed", 1)


CLAIMS = {
    "claim": lambda queue: [queue.claim()],
    "claim(group=)": lambda queue: [queue.claim(group="g")],
    "claim(wait=)": lambda queue: [queue.claim(wait=30)],
    "claim_many": lambda queue: queue.claim_many(10),
    "claim_group": lambda queue: queue.claim_group(),
}


@pytest.mark.parametrize("how", CLAIMS)
def test_every_way_of_claiming_goes_on_to_the_next(queue, rot, how):
    queue.enqueue("damaged", group="g")
    rot("content", "'wrong'")
    queue.enqueue("good", group="g")
    assert [item.content for item in CLAIMS[how](queue)] == ["good"]
    assert queue.get(1).status == "failed"


@pytest.mark.parametrize("options", [{}, {"concurrency": 3}, {"batch": "group"}])
def test_loops_go_on_to_the_next(queue, rot, options):
    queue.enqueue_many([NewItem("damaged", group="g")] * 5)
    rot("content", "'wrong'")
    queue.enqueue_many([NewItem("good", group="g")] * 5)
    delivered = []
    # A handler of whole groups gets a list.
    queue.drain(lambda items: delivered.extend(items if isinstance(items, list) else [items]), **options)
    assert [item.content for item in delivered] == ["good"] * 5
    assert (queue.counts()["done"], queue.counts()["failed"]) == (5, 5)


def by_own_connection(queue, path):
    connection = sqlite3.connect(path)
    with connection:
        queue.enqueue("document", connection=connection)
    connection.close()


def by_replacing_on_an_own_connection(queue, path):
    queue.enqueue("older", key="k")
    connection = sqlite3.connect(path)
    with connection:
        queue.enqueue("document", key="k", on_duplicate="replace", connection=connection)
    connection.close()


def by_replacing(queue, path):
    queue.enqueue("older", key="k")
    queue.enqueue("document", key="k", on_duplicate="replace")


def by_replacing_with_the_same(queue, path):
    queue.enqueue("document", key="k")
    queue.enqueue("document", key="k", on_duplicate="replace")


def by_replaying(queue, path):
    queue.enqueue("document")
    item = queue.claim()
    queue.replay(item.id)
    queue.mark_done(item)


def by_a_file(queue, path):
    file = path.with_name("handoff.md")
    file.write_text("document")
    queue.enqueue_file(file)


def by_a_schedule(queue, path):
    queue.schedule("s", "document", every=1000)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE membox_queue_schedules SET next_at = 0")
    connection.close()
    queue.release(queue.claim())


ENQUEUES = {
    "enqueue": lambda queue, path: queue.enqueue("document", headers={"a": 1}),
    "enqueue_many": lambda queue, path: queue.enqueue_many(["document", b"document", ["document"]]),
    "by content": lambda queue, path: queue.enqueue("document", key=BY_CONTENT),
    "connection=": by_own_connection,
    "connection=, replacing": by_replacing_on_an_own_connection,
    "replacing": by_replacing,
    "replacing with the same": by_replacing_with_the_same,
    "replay": by_replaying,
    "enqueue_file": by_a_file,
    "schedule": by_a_schedule,
}


@pytest.mark.parametrize("how", ENQUEUES)
def test_every_enqueue_of_ours_writes_a_checksum_that_a_claim_accepts(queue, path, sql, how):
    ENQUEUES[how](queue, path)
    assert sql(path, "SELECT count(*) FROM ingest_queue WHERE checksum IS NULL") == [[0]]
    assert len(queue.claim_many(10)) == queue.counts()["processing"] > 0
    assert queue.counts()["failed"] == 0


@pytest.mark.parametrize("how", ENQUEUES)
def test_damage_after_any_enqueue_of_ours_is_noticed(queue, path, rot, how):
    ENQUEUES[how](queue, path)
    rot("content", "'documenu'")
    assert queue.claim_many(10) == []
    assert queue.counts()["failed"] > 0


def test_a_copy_of_a_damaged_item_is_damaged(queue, rot):
    queue.enqueue("document")
    rot("content", "'wrong'")
    queue.replay(1)
    assert queue.claim() is None
    assert queue.counts()["failed"] == 2


def test_a_damaged_schedule_enqueues_nothing_that_is_delivered(queue, path, clock, rot, sql):
    queue.schedule("s", "document", every=60)
    rot("content", "'wrong'", "membox_queue_schedules")
    clock.advance(61)
    assert queue.claim() is None
    assert "checksum" in queue.get(1).error


def test_rows_of_plain_sql_have_none_and_are_delivered(queue, path, sql):
    sql(path, "INSERT INTO ingest_queue (content) VALUES ('plain')")
    assert sql(path, "SELECT checksum FROM ingest_queue") == [[None]]
    assert queue.claim().content == "plain"


@pytest.mark.parametrize(
    "change",
    [
        "content = 'mine'",
        "content = '[\"mine\"]', content_type = 'json'",
        "headers = '{\"mine\": 1}'",
        "headers = NULL, content = 'mine'",
    ],
)
def test_what_somebody_changes_on_purpose_is_delivered(queue, path, sql, change):
    queue.enqueue("document", headers={"from": "a"})
    sql(path, f"UPDATE ingest_queue SET {change}")
    assert sql(path, "SELECT checksum FROM ingest_queue") == [[None]]
    item = queue.claim()
    assert item.content in ("mine", ["mine"]) or item.headers == {"mine": 1}


def test_a_schedule_that_somebody_changes_is_delivered(queue, path, clock, sql):
    queue.schedule("s", "document", every=60)
    sql(path, "UPDATE membox_queue_schedules SET content = 'mine'")
    clock.advance(61)
    assert queue.claim().content == "mine"


def test_a_person_can_take_damaged_content_as_it_is(queue, path, rot, sql):
    queue.enqueue("document")
    rot("content", "'docXment'")
    assert queue.claim() is None
    sql(path, "UPDATE ingest_queue SET checksum = NULL")
    assert queue.retry(1)
    assert queue.claim().content == "docXment"


def test_changes_of_other_columns_keep_the_checksum(queue, path, sql):
    queue.enqueue("document")
    before = sql(path, "SELECT checksum FROM ingest_queue")
    queue.mark_failed(queue.claim(), "no")
    queue.retry(1)
    sql(path, "UPDATE ingest_queue SET priority = 5, project = 'p', content = content")
    queue.cancel(1)
    assert sql(path, "SELECT checksum FROM ingest_queue") == before


def test_content_that_was_dropped_has_none(path, sql):
    with Queue(path, keep_content=False) as queue:
        queue.enqueue("document")
        queue.mark_done(queue.claim())
        assert sql(path, "SELECT checksum FROM ingest_queue") == [[None]]


def test_a_claim_of_a_long_document_writes_one_page_of_it(path):
    with Queue(path, durability="normal") as queue:
        queue.enqueue("x" * 400_000)
        queue.compact()
        log = path.with_name(path.name + "-wal")
        before = log.stat().st_size
        assert queue.mark_done(queue.claim())
        assert log.stat().st_size - before < 100_000
