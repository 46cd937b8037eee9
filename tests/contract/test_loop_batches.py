"""Loops that hand out whole groups as batches."""

import threading
from datetime import timedelta

import pytest
from membox_queue import (
    DrainReport,
    NewItem,
)


class TestBatches:
    @pytest.fixture(autouse=True)
    def groups(self, queue):
        queue.enqueue_many(NewItem(name, group=name[0]) for name in ("a1", "b1", "a2", "a3"))

    def test_a_handler_is_given_all_pending_items_of_a_group_as_a_list(self, queue):
        handed = []

        def handler(items):
            handed.append([(item.content, item.status) for item in items])

        assert queue.drain(handler, batch="group") == DrainReport(done=4)
        assert handed == [[(name, "processing") for name in ("a1", "a2", "a3")], [("b1", "processing")]]

    def test_an_item_without_a_group_comes_by_itself(self, queue):
        queue.enqueue_many(["free", "free"])
        handed = []
        assert queue.drain(lambda items: handed.append(len(items)), batch="group") == DrainReport(done=6)
        assert sorted(handed) == [1, 1, 1, 3]

    def test_groups_and_items_without_one_come_in_one_order(self, queue):
        queue.enqueue("later")
        queue.enqueue("urgent", priority=9)
        handed = []
        queue.drain(lambda items: handed.append(items[0].content), batch="group")
        assert handed == ["urgent", "a1", "b1", "later"]

    def test_a_limit_bounds_the_items_of_a_batch(self, queue):
        handed = []
        assert queue.drain(lambda items: handed.append(len(items)), batch="group", limit=2) == DrainReport(done=2)
        assert handed == [2]

    def test_a_list_of_as_many_results_gives_each_item_its_own(self, queue):
        queue.drain(lambda items: [item.content.upper() for item in items], batch="group")
        assert [item.result for item in queue.items()] == ["A1", "B1", "A2", "A3"]

    def test_any_other_result_is_that_of_all(self, queue):
        queue.drain(lambda items: {"of": len(items)}, batch="group")
        assert [item.result for item in queue.items()] == [{"of": 3}, {"of": 1}, {"of": 3}, {"of": 3}]

    def test_a_result_that_cannot_be_stored_is_left_out_and_the_items_are_done(self, queue, caplog):
        results = iter([[1, object(), 3], [4]])
        assert queue.drain(lambda items: next(results), batch="group") == DrainReport(done=4, unstored=1)
        assert [item.result for item in queue.items()] == [1, 4, None, 3]
        assert "the result of item 3 is not stored" in caplog.text

    def test_a_failing_batch_fails_its_first_item_and_releases_the_later_ones_uncounted(self, queue):
        def handler(items):
            raise LookupError(items[0].content)

        assert queue.drain(handler, batch="group", limit=3) == DrainReport(failed=1, released=2)
        found = {item.content: (item.status, item.retries, item.error) for item in queue.items(group="a")}
        assert found["a1"] == ("failed", 1, "LookupError: a1")
        assert found["a2"] == found["a3"] == ("pending", 0, None)

    def test_a_failing_batch_is_handled_to_its_end_one_failure_at_a_time(self, queue):
        def handler(items):
            raise LookupError(items[0].content)

        assert queue.drain(handler, batch="group") == DrainReport(failed=4, released=3)
        assert [item.error for item in queue.items(group="a")] == [f"LookupError: a{n}" for n in (1, 2, 3)]

    def test_what_the_handler_finished_before_it_failed_stays_finished(self, queue):
        def handler(items):
            queue.mark_done(items[0], result="mine")
            raise LookupError(items[1].content)

        assert queue.drain(handler, batch="group", limit=3) == DrainReport(done=1, failed=1, released=1)
        found = {item.content: (item.status, item.result) for item in queue.items(group="a")}
        assert found == {"a1": ("done", "mine"), "a2": ("failed", None), "a3": ("pending", None)}

    def test_several_groups_are_handled_at_once(self, queue):
        together = threading.Barrier(2)
        report = queue.drain(lambda items: together.wait(10) and None, batch="group", concurrency=2)
        assert report == DrainReport(done=4)

    def test_every_item_of_a_long_batch_is_kept_alive(self, open_queue, clock, until):
        with open_queue(lease=0.3) as short:

            def handler(items):
                for _ in range(3):
                    clock.advance(0.29)
                    for item in items:
                        until(lambda item=item: short.get(item.id).lease_until == clock.now + timedelta(seconds=0.4))
                assert short.claim(group="a") is None

            assert short.drain(handler, batch="group", limit=3) == DrainReport(done=3)
