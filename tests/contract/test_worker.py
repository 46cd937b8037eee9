"""Worker: the handlers of several queues, served in one process."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from loops_in_threads import failing, nothing
from membox_queue import (
    DrainReport,
    Rate,
    Worker,
)
from membox_queue.workers import pool


class TestWorker:
    @pytest.fixture
    def queues(self, open_queue):
        with open_queue("ingest") as ingest, open_queue("emails") as emails, open_queue("other") as other:
            yield ingest, emails, other

    @pytest.fixture
    def worker(self, address):
        made = []

        def worker(handlers, **options):
            made.append(Worker(address, handlers, **options))
            return made[-1]

        yield worker
        for one in made:
            one.stop()

    def test_one_pool_serves_several_queues_each_with_its_handler(self, queues, worker, until):
        ingest, emails, _ = queues
        handled = []
        one = worker(
            {
                "ingest": lambda item: handled.append(("ingest", item.content)),
                "emails": lambda item: handled.append(("emails", item.content)),
            }
        )
        ingest.enqueue_many([1, 2])
        one.start()
        until(lambda: ingest.counts()["done"] == 2)
        emails.enqueue(3)
        until(lambda: emails.counts()["done"] == 1)
        assert one.stop() == DrainReport(done=3, stopped=True)
        assert handled == [("ingest", 1), ("ingest", 2), ("emails", 3)]

    def test_the_oldest_item_of_all_queues_comes_first(self, queues, worker):
        ingest, emails, _ = queues
        for number in range(4):
            (ingest if number % 2 else emails).enqueue(number)
        seen = []
        handlers = dict.fromkeys(["idle", "ingest", "emails"], lambda item: seen.append((item.queue, item.content)))
        assert worker(handlers).drain() == DrainReport(done=4)
        assert seen == [("emails", 0), ("ingest", 1), ("emails", 2), ("ingest", 3)]

    def test_a_higher_priority_comes_first_in_whatever_queue(self, queues, worker):
        ingest, emails, other = queues
        ingest.enqueue("later")
        emails.enqueue("first", priority=9)
        other.enqueue("second", priority=5)
        emails.enqueue("last")
        seen = []
        handlers = dict.fromkeys(["ingest", "emails", "other"], lambda item: seen.append(item.content))
        worker(handlers).drain()
        assert seen == ["first", "second", "later", "last"]

    def test_a_paused_or_limited_queue_does_not_hold_up_the_others(self, queues, worker):
        ingest, emails, other = queues
        ingest.enqueue("paused", priority=9)
        ingest.pause()
        emails.configure(rate=Rate(1, per=3600))
        emails.enqueue_many(["once", "not now"])
        other.enqueue("other")
        seen = []
        handlers = dict.fromkeys(["ingest", "emails", "other"], lambda item: seen.append(item.content))
        worker(handlers).drain()
        assert seen == ["once", "other"]

    def test_whole_groups_of_several_queues_come_by_priority(self, queues, worker):
        ingest, emails, _ = queues
        ingest.enqueue("a1", group="a")
        emails.enqueue("b1", group="b", priority=1)
        emails.enqueue("b2", group="b")
        ingest.enqueue("alone", priority=5)
        seen = []
        handlers = dict.fromkeys(["ingest", "emails"], lambda items: seen.append([item.content for item in items]))
        worker(handlers, batch="group").drain()
        assert seen == [["alone"], ["b1", "b2"], ["a1"]]

    def test_a_drain_handles_what_is_due_in_all_queues_and_leaves_no_worker(self, queues, worker):
        ingest, emails, _ = queues
        ingest.enqueue_many(range(5))
        emails.enqueue_many(range(5))
        seen = []

        def handler(item):
            (info,) = ingest.workers()
            seen.append((info.kind, info.queues, ingest.worker_is_alive(), emails.worker_is_alive()))

        one = worker({"ingest": handler, "emails": handler}, concurrency=2)
        assert one.drain() == DrainReport(done=10)
        assert set(seen) == {("drain", ("ingest", "emails"), True, True)}
        assert (ingest.workers(), ingest.worker_is_alive()) == ([], False)
        assert one.drain() == DrainReport(), "nothing is left"

    def test_what_is_enqueued_while_a_drain_is_alive_is_handled(self, queues, worker):
        ingest, emails, _ = queues

        def handler(item):
            # An enqueuer that sees a live worker relies on it to look at this queue, too.
            if emails.worker_is_alive() and item.content > 0:
                emails.enqueue(item.content - 1)

        ingest.enqueue(20)
        one = worker({"ingest": handler, "emails": handler}, concurrency=3)
        assert one.drain() == DrainReport(done=21)

    def test_a_queue_without_a_handler_is_left_alone(self, queues, worker):
        ingest, _, other = queues
        other.enqueue("theirs")
        ingest.enqueue("ours")
        assert worker({"ingest": nothing}, limit=1).run() == DrainReport(done=1)
        assert other.get(1).attempt == 0

    def test_the_pool_is_shared_by_all_queues(self, queues, worker, until):
        ingest, emails, _ = queues
        together = threading.Barrier(3)
        wait = lambda item: together.wait(30) and None  # noqa: E731
        one = worker({"ingest": wait, "emails": wait}, concurrency=2)
        ingest.enqueue("a")
        emails.enqueue("b")
        emails.enqueue("c")
        one.start()
        until(lambda: ingest.counts()["processing"] + emails.counts()["processing"] == 2)
        assert ingest.counts()["pending"] + emails.counts()["pending"] == 1
        together.wait(30)
        until(lambda: ingest.counts()["done"] + emails.counts()["done"] == 2)
        together.reset()
        one.loop.stop()

    def test_starting_and_stopping_twice_is_once_and_it_may_start_again(self, queues, worker, until):
        ingest = queues[0]
        one = worker({"ingest": nothing})
        assert one.stop() is None
        for number in (1, 2):
            one.start()
            one.start()
            ingest.enqueue(number)
            until(lambda number=number: ingest.counts()["done"] == number)
            assert one.stop() == DrainReport(done=1, stopped=True)
            assert one.stop() is None

    def test_one_that_has_ended_by_itself_can_be_started_again(self, queues, worker, until):
        ingest = queues[0]
        one = worker({"ingest": nothing}, limit=1)
        for number in (1, 2):
            ingest.enqueue(number)
            one.start()
            until(lambda number=number: ingest.counts()["done"] == number)
            until(lambda: one.loop is None)
        assert one.stop() == DrainReport(done=1)

    def test_one_whose_loop_has_just_ended_serves_again(self, queues, worker, until, monkeypatch):
        ingest = queues[0]
        one = worker({"ingest": nothing}, limit=1)
        closing, free = threading.Event(), threading.Event()
        close = pool.close_queue

        def slowly(queue):
            closing.set()
            assert free.wait(30)
            close(queue)

        monkeypatch.setattr(pool, "close_queue", slowly)
        ingest.enqueue(1)
        one.start()
        assert closing.wait(30)
        ingest.enqueue(2)
        with ThreadPoolExecutor() as threads:
            started = threads.submit(one.start)
            free.set()
            started.result(30)
        until(lambda: ingest.counts()["done"] == 2)

    def test_a_start_while_it_stops_starts_it_again(self, queues, worker, until):
        ingest = queues[0]
        began, free = threading.Event(), threading.Event()

        def handler(item):
            began.set()
            assert free.wait(30)

        one = worker({"ingest": handler})
        one.start()
        ingest.enqueue(1)
        assert began.wait(30)
        first = one.loop
        with ThreadPoolExecutor() as threads:
            stopped = threads.submit(one.stop)
            until(lambda: first.stop_asked)
            started = threads.submit(one.start)
            free.set()
            started.result(30)
            assert stopped.result(30) == DrainReport(done=1, stopped=True)
        assert ingest.wait(ingest.enqueue(2), 30).status == "done"
        assert one.stop() == DrainReport(done=1, stopped=True)

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_cannot_start_it_again_while_it_stops(self, queues, worker, concurrency):
        ingest = queues[0]

        def handler(item):
            one.stop()
            one.start()

        one = worker({"ingest": handler}, concurrency=concurrency)
        one.start()
        assert "it is stopping" in ingest.wait(ingest.enqueue(1), 30).error

    def test_what_ended_it_is_raised_by_a_start_that_comes_before_stop(self, queues, worker, until):
        def handler(item):
            raise SystemExit(3)

        one = worker({"ingest": handler})
        one.start()
        queues[0].enqueue("x", max_retries=1)
        until(lambda: one.loop is None)
        with pytest.raises(SystemExit):
            one.start()
        one.start()
        assert one.stop() == DrainReport(stopped=True)

    def test_it_cannot_run_twice_at_once(self, queues, worker):
        one = worker({"ingest": nothing})
        one.start()
        with pytest.raises(RuntimeError, match="running already"):
            one.run()

    def test_each_queue_has_options_of_its_own(self, queues, worker, until):
        ingest, emails, _ = queues
        options = {"ingest": {"lease": 5, "worker": "anna"}, "emails": {"lease": 500, "worker": "berta"}}
        ingest.enqueue("a")
        emails.enqueue("b")
        seen = {}

        def handler(item):
            seen[item.queue] = (item.worker, item.lease_until - item.started_at)

        assert worker({"ingest": handler, "emails": handler}, options=options, limit=2).run().done == 2
        assert seen == {"ingest": ("anna", timedelta(seconds=5)), "emails": ("berta", timedelta(seconds=500))}

    def test_what_is_configured_in_the_file_holds_for_it(self, queues, worker):
        ingest = queues[0]
        ingest.configure(lease=7)
        ingest.enqueue("a")
        leases = []
        worker({"ingest": lambda item: leases.append(item.lease_until - item.started_at)}, limit=1).run()
        assert leases == [timedelta(seconds=7)]

    def test_a_failing_item_of_one_queue_uses_that_queues_settings(self, queues, worker):
        ingest, emails, _ = queues
        ingest.enqueue("a")
        emails.enqueue("b")
        options = {"emails": {"max_retries": 1}}
        worker({"ingest": failing, "emails": failing}, options=options, limit=2).run()
        assert (ingest.retry_failed(), emails.retry_failed()) == (1, 0)
        assert emails.options["max_retries"] == 1

    def test_the_size_limit_of_a_result_is_that_of_its_queue(self, queues, worker, caplog):
        ingest, emails, _ = queues
        ingest.enqueue("a")
        emails.enqueue("b")
        options = {"ingest": {"max_bytes": 10}}
        handlers = {"ingest": lambda item: None, "emails": lambda item: "r" * 100}
        worker(handlers, options=options, limit=2).run()
        assert emails.get(2).result == "r" * 100

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_may_stop_it(self, queues, worker, until, concurrency):
        ingest = queues[0]
        ingest.enqueue_many(range(20))
        one = worker({"ingest": lambda item: one.stop()}, concurrency=concurrency)
        one.start()
        until(lambda: one.loop is None)
        assert ingest.counts()["failed"] == 0
        report = one.stop()
        assert 1 <= report.done <= concurrency
        assert report == DrainReport(done=report.done, stopped=True)

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_handler_that_does_not_end_is_not_waited_for_longer_than_the_grace(self, queues, worker, concurrency):
        ingest = queues[0]
        ingest.enqueue("x")
        began, free = threading.Event(), threading.Event()

        def handler(item):
            began.set()
            free.wait(60)

        one = worker({"ingest": handler}, concurrency=concurrency, grace=0.05)
        try:
            one.start()
            assert began.wait(30)
            assert one.stop() == DrainReport(released=1, stopped=True)
            assert not free.is_set()
            one.start()
        finally:
            free.set()

    def test_it_serves_for_as_long_as_a_block_runs(self, address, queues):
        with Worker(address, {"ingest": nothing}) as one:
            assert queues[0].wait(queues[0].enqueue("x"), 30).status == "done"
        assert one.stop() is None

    def test_what_ended_it_is_raised_by_stop(self, queues, worker, until):
        ingest = queues[0]

        def handler(item):
            raise SystemExit(3)

        one = worker({"ingest": handler})
        one.start()
        ingest.enqueue("x")
        until(lambda: one.loop is None)
        with pytest.raises(SystemExit):
            one.stop()
        assert one.stop() is None
        assert (ingest.get(1).status, ingest.get(1).retries) == ("pending", 1)

    @pytest.mark.parametrize(
        ("handlers", "options", "wrong"),
        [({}, {}, ValueError), ({"a": nothing}, {"b": {}}, ValueError), ({"a": "name"}, {}, TypeError)],
    )
    def test_a_worker_that_makes_no_sense_is_refused(self, address, handlers, options, wrong):
        with pytest.raises(wrong):
            Worker(address, handlers, options=options).run()

    @pytest.mark.parametrize("plan", [{"exclusive": True}, {"patience": 3}])
    def test_what_it_does_not_take_is_refused_by_name(self, address, plan):
        with pytest.raises(TypeError, match=next(iter(plan))):
            Worker(address, {"a": nothing}, **plan)
