"""schedule: what is enqueued again and again, each tick once whoever claims first after it."""

import itertools
import pickle
import threading
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from membox_queue import BY_CONTENT, DrainReport, PayloadTooLargeError, QueueClosedError
from programs import PROGRAMS


def moment(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def at(clock):
    """Set the clock to a moment in UTC."""
    return lambda text: clock.advance((moment(text) - clock.now).total_seconds())


def take(queue):
    """Handle what is due; return its contents."""
    contents = []
    while item := queue.claim():
        contents.append(item.content)
        queue.mark_done(item)
    return contents


def test_an_interval_ticks_from_now_on(queue, clock):
    began = clock.now
    schedule = queue.schedule("poll", {"url": "x"}, every=60)
    assert (schedule.name, schedule.content, schedule.every, schedule.cron) == ("poll", {"url": "x"}, 60, None)
    assert (schedule.next_at, schedule.last_at, schedule.last_id) == (began + timedelta(seconds=60), None, None)
    assert take(queue) == []
    clock.advance(59.999)
    assert take(queue) == []
    clock.advance(0.001)
    assert take(queue) == [{"url": "x"}]
    assert take(queue) == []
    (schedule,) = queue.schedules()
    assert schedule.next_at == began + timedelta(seconds=120)
    assert (schedule.last_at, schedule.last_id) == (clock.now, 1)


def test_a_cron_pattern_is_read_in_its_time_zone(queue, at):
    at("2026-06-14 06:00")
    berlin = queue.schedule("berlin", "b", cron="30 9 * * *", tz="Europe/Berlin")
    utc = queue.schedule("utc", "u", cron="30 9 * * *")
    assert (berlin.cron, berlin.tz, berlin.every) == ("30 9 * * *", "Europe/Berlin", None)
    assert (berlin.next_at, utc.next_at) == (moment("2026-06-14 07:30"), moment("2026-06-14 09:30"))
    at("2026-06-14 07:30")
    assert take(queue) == ["b"]
    at("2026-06-14 09:30")
    assert take(queue) == ["u"]
    assert [schedule.next_at for schedule in queue.schedules()] == [
        moment("2026-06-15 07:30"),
        moment("2026-06-15 09:30"),
    ]


def ticks(queue, at, start, count, **timing):
    """The next moments of a schedule, each of them claimed."""
    at(start)
    queue.schedule("s", "x", **timing)
    moments = []
    for _ in range(count):
        (schedule,) = queue.schedules()
        moments.append(schedule.next_at.strftime("%m-%d %H:%M"))
        at(schedule.next_at.replace(tzinfo=None).isoformat())
        assert take(queue) == ["x"]
    return moments


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        # The clocks go from 2:00 to 3:00: half past two is made up for at three.
        ("2026-03-27 12:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        # The clocks go from 3:00 back to 2:00: half past two comes twice, and counts the first time.
        ("2026-10-23 12:00", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
    ],
)
def test_a_time_of_day_ticks_once_on_days_when_the_clocks_change(queue, at, start, expected):
    assert ticks(queue, at, start, 3, cron="30 2 * * *", tz="Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("tz", "start", "pattern", "expected"),
    [
        ("Europe/Berlin", "2026-03-28 00:00", "30 1 * * *", ["03-28 00:30", "03-29 00:30", "03-29 23:30"]),
        ("America/New_York", "2026-03-07 06:00", "30 1 * * *", ["03-07 06:30", "03-08 06:30", "03-09 05:30"]),
        # Midnight is left out, and made up for at one.
        ("Africa/Cairo", "2026-04-22 12:00", "0 0 * * *", ["04-22 22:00", "04-23 22:00", "04-24 21:00"]),
        ("Africa/Cairo", "2026-04-22 12:00", "0 18 * * *", ["04-22 16:00", "04-23 16:00", "04-24 15:00"]),
        # Half an hour is left out.
        ("Australia/Lord_Howe", "2026-10-02 14:00", "30 1 * * *", ["10-02 15:00", "10-03 15:00", "10-04 14:30"]),
        # The clocks go from one back to midnight.
        ("America/Havana", "2026-10-31 12:00", "30 0 * * *", ["11-01 04:30", "11-02 05:30", "11-03 05:30"]),
    ],
)
def test_a_time_of_day_ticks_once_a_day_wherever_the_clocks_change(queue, at, tz, start, pattern, expected):
    assert ticks(queue, at, start, 3, cron=pattern, tz=tz) == expected


@pytest.mark.parametrize("start", ["2026-03-28 23:30", "2026-10-24 23:30"])
def test_an_hourly_pattern_ticks_every_hour_when_the_clocks_change(queue, at, start):
    hours = ticks(queue, at, start, 4, cron="0 * * * *", tz="Europe/Berlin")
    assert [text[-5:] for text in hours] == ["00:00", "01:00", "02:00", "03:00"]


def test_an_interval_does_not_care_about_clocks_that_change(queue, at, clock):
    at("2026-10-24 23:30")
    queue.schedule("s", "x", every=timedelta(hours=1))
    for _ in range(4):
        clock.advance(3600)
        assert take(queue) == ["x"]


@pytest.mark.parametrize(
    ("pattern", "start", "expected"),
    [
        ("*/15 * * * *", "2026-06-14 10:01", "2026-06-14 10:15"),
        ("0 9 * * MON-FRI", "2026-06-12 10:00", "2026-06-15 09:00"),
        ("0 0 1 * *", "2026-06-14 10:00", "2026-07-01 00:00"),
        ("0 0 29 2 *", "2026-06-14 10:00", "2028-02-29 00:00"),
        ("0 0 * * 0", "2026-06-14 10:00", "2026-06-21 00:00"),
    ],
)
def test_patterns(queue, at, pattern, start, expected):
    at(start)
    assert queue.schedule("s", "x", cron=pattern).next_at == moment(expected)


def test_ticks_that_were_missed_collapse_into_one_and_the_beat_is_kept(queue, clock, at):
    at("2026-06-14 10:00")
    queue.schedule("hourly", "h", cron="0 * * * *")
    queue.schedule("beat", "b", every=60)
    at("2026-06-16 12:30:30")
    assert sorted(take(queue)) == ["b", "h"]
    beat, hourly = queue.schedules()
    assert (beat.next_at, hourly.next_at) == (moment("2026-06-16 12:31"), moment("2026-06-16 13:00"))
    assert beat.last_at == clock.now


def test_a_tick_is_an_ordinary_item_with_everything_it_was_given(queue, clock):
    queue.schedule(
        "s",
        b"bytes",
        every=60,
        project="p",
        source_path="/a/b.md",
        doc_date="2026-06-14",
        priority=5,
        max_retries=1,
        headers={"a": [1]},
        group="g",
        key="k",
    )
    clock.advance(60)
    item = queue.claim()
    assert (item.content, item.project, item.source_path, item.doc_date) == (b"bytes", "p", "/a/b.md", "2026-06-14")
    assert (item.priority, item.max_retries, item.headers, item.group, item.key) == (5, 1, {"a": [1]}, "g", "k")
    assert (item.enqueued_at, item.run_at) == (clock.now, None)
    (schedule,) = queue.schedules()
    assert (schedule.group, schedule.priority, schedule.content, schedule.last_id) == ("g", 5, b"bytes", item.id)
    assert (schedule.project, schedule.source_path, schedule.doc_date) == ("p", "/a/b.md", "2026-06-14")
    assert (schedule.max_retries, schedule.headers, schedule.key) == (1, {"a": [1]}, "k")
    queue.mark_failed(item, "no")
    assert queue.get(item.id).status == "failed"


@pytest.mark.parametrize("content", ["text", {"a": [1, None]}, None, 5, "", b"", b"\x00\xff", [], "\x00"])
def test_content_comes_back_as_it_was_given(queue, open_queue, clock, content):
    queue.schedule("s", content, every=1)
    with open_queue() as other:
        (schedule,) = other.schedules()
        assert (schedule.content, type(schedule.content)) == (content, type(content))
    clock.advance(1)
    assert take(queue) == [content]


def test_a_key_keeps_ticks_from_piling_up(queue, clock):
    queue.schedule("s", "x", every=60, key="only")
    for _ in range(3):
        clock.advance(60)
        queue.claim(group="nobody")
    assert queue.counts()["pending"] == 1
    item = queue.claim(lease=9999)
    clock.advance(60)
    assert queue.claim() is None
    assert queue.schedules()[0].last_id == item.id
    queue.mark_done(item)
    clock.advance(60)
    assert queue.claim().id == 2


def test_without_a_key_ticks_pile_up(queue, clock):
    queue.schedule("s", "x", every=60)
    for _ in range(3):
        clock.advance(60)
        queue.claim(group="nobody")
    assert queue.counts()["pending"] == 3


def test_a_key_may_be_made_from_the_content(queue, clock):
    schedule = queue.schedule("s", {"a": 1}, every=60, key=BY_CONTENT)
    assert schedule.key == queue.schedules()[0].key
    id = queue.enqueue({"a": 1}, key=BY_CONTENT)
    clock.advance(60)
    assert take(queue) == [{"a": 1}]
    assert queue.schedules()[0].last_id == id


def test_the_next_tick_stays_when_a_program_says_the_same_again(queue, open_queue, clock):
    began = clock.now
    queue.schedule("s", "old", every=60)
    queue.schedule("c", "old", cron="0 0 * * *", tz="Asia/Tokyo")
    midnight = queue.schedules()[0].next_at
    clock.advance(45)
    with open_queue() as other:
        assert other.schedule("s", "new", every=60, priority=3).next_at == began + timedelta(seconds=60)
        assert other.schedule("c", "new", cron="0 0 * * *", tz="Asia/Tokyo").next_at == midnight
    clock.advance(15)
    assert queue.claim().content == "new"
    assert queue.schedule("s", "newer", every=60).last_id == 1


def test_a_tick_that_is_due_is_not_lost_by_saying_the_same_again(queue, clock):
    queue.schedule("s", "x", every=60)
    clock.advance(90)
    queue.schedule("s", "x", every=60)
    assert take(queue) == ["x"]


def test_another_timing_begins_anew(queue, clock, at):
    at("2026-06-14 10:00")
    queue.schedule("s", "x", every=3600)
    clock.advance(30)
    assert queue.schedule("s", "x", every=60).next_at == moment("2026-06-14 10:01:30")
    assert queue.schedule("s", "x", cron="0 12 * * *").next_at == moment("2026-06-14 12:00")
    assert queue.schedule("s", "x", cron="0 12 * * *", tz="Europe/Berlin").next_at == moment("2026-06-15 10:00")
    assert len(queue.schedules()) == 1


def test_schedules_are_listed_by_name_and_belong_to_one_queue(queue, open_queue, clock):
    for name in ("b", "a", "ü", "c d"):
        queue.schedule(name, name, every=60)
    with open_queue("mail") as mail:
        mail.schedule("a", "mail", every=60)
        assert [schedule.name for schedule in queue.schedules()] == ["a", "b", "c d", "ü"]
        assert [schedule.content for schedule in mail.schedules()] == ["mail"]
        assert queue.unschedule("a")
        clock.advance(60)
        assert take(mail) == ["mail"]
    assert sorted(take(queue)) == ["b", "c d", "ü"]


def test_unschedule_says_whether_there_was_one_and_spares_what_was_enqueued(queue, clock):
    queue.schedule("s", "x", every=60)
    clock.advance(60)
    queue.claim(group="nobody")
    assert queue.unschedule("s")
    assert not queue.unschedule("s")
    assert queue.schedules() == []
    clock.advance(3600)
    assert take(queue) == ["x"]


def test_schedules_outlive_the_program(open_queue, clock):
    with open_queue() as queue:
        queue.schedule("s", "x", every=60)
    clock.advance(3600)
    with open_queue() as queue:
        assert take(queue) == ["x"]
        with pickle.loads(pickle.dumps(queue)) as copy:
            assert copy.schedules()[0].last_id == 1


@pytest.mark.parametrize("verb", ["claim", "claim_many", "claim_group", "drain", "work", "wait"])
def test_whoever_claims_lets_it_tick(queue, clock, verb):
    queue.schedule("s", "x", every=60, group="g")
    clock.advance(60)
    if verb == "claim":
        assert queue.claim().id == 1
    elif verb == "wait":
        assert queue.claim(wait=30).id == 1
    elif verb == "claim_many":
        assert len(queue.claim_many(5)) == 1
    elif verb == "claim_group":
        assert len(queue.claim_group()) == 1
    elif verb == "drain":
        assert queue.drain(lambda item: None) == DrainReport(done=1)
    else:
        assert queue.work(lambda item: None, limit=1).done == 1


def test_a_waiting_claim_wakes_at_the_tick(queue):
    queue.schedule("s", "x", every=0.2)
    moments = []
    for _ in range(4):
        item = queue.claim(wait=30)
        moments.append((item.enqueued_at, time.monotonic()))
        queue.mark_done(item)
    assert moments[2][0] - moments[0][0] >= timedelta(seconds=0.3)
    # Not at the next poll half a second later.
    assert min(later - earlier for (_, earlier), (_, later) in itertools.pairwise(moments)) < 0.4


def test_a_schedule_made_elsewhere_wakes_a_claim_that_waits_already(queue, open_queue):
    found = []
    thread = threading.Thread(target=lambda: found.append(queue.claim(wait=30)))
    thread.start()
    with open_queue() as other:
        other.schedule("s", "x", every=0.05)
        thread.join(30)
        other.unschedule("s")
    assert found[0].content == "x"


def test_a_drain_that_lingers_waits_for_the_next_tick(queue):
    queue.schedule("s", "x", every=0.1)
    assert queue.drain(lambda item: None, linger=5, limit=2).done == 2


def test_a_tick_is_enqueued_once_with_many_processes(queue, address, start, clock):
    for number in range(3):
        queue.schedule(f"s{number}", number, every=60)
    processes = [start(PROGRAMS / "claim_at_each_moment.py", address) for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for tick in range(1, 21):
        clock.advance(60)
        for process in processes:
            process.stdin.write(f"{clock.ms}\n")
            process.stdin.flush()
        assert sum(int(process.stdout.readline()) for process in processes) == 3
        assert queue.counts()["done"] == 3 * tick


def test_a_tick_is_enqueued_once_with_many_threads(open_queue, clock):
    with open_queue(durability="normal") as queue:
        queue.schedule("s", "x", every=60)
        for tick in range(1, 21):
            clock.advance(60)
            barrier = threading.Barrier(4)

            def claim(barrier=barrier):
                barrier.wait()
                while item := queue.claim():
                    queue.mark_done(item)

            threads = [threading.Thread(target=claim) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert queue.counts()["done"] == tick


def test_a_paused_queue_does_not_tick_and_makes_up_with_one(queue, clock):
    queue.schedule("s", "x", every=60)
    queue.pause()
    clock.advance(600)
    assert queue.claim() is None
    assert queue.counts()["pending"] == 0
    queue.resume()
    assert take(queue) == ["x"]


def test_more_schedules_than_one_claim_lets_tick_all_tick(queue, clock):
    for number in range(150):
        queue.schedule(f"s{number:03}", number, every=60, key=f"k{number}")
    clock.advance(60)
    ticked = []
    while items := queue.claim_many(500, lease=9999):
        ticked += items
    assert sorted(item.content for item in ticked) == list(range(150))
    clock.advance(1)
    queue.schedule("last", "last", every=60)
    clock.advance(60)
    assert queue.claim().content == "last"


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("timing", [{"every": 60}, {"cron": "* * * * *"}])
def test_a_clock_that_goes_back_a_day_does_not_silence_a_schedule_for_a_day(open_queue, clock, timing, reopened):
    queue = open_queue()
    queue.schedule("s", "x", **timing)
    clock.advance(60)
    assert take(queue) == ["x"]
    clock.advance(-86400)
    if reopened:
        queue.close()
        queue = open_queue()
    assert take(queue) == []
    clock.advance(60)
    assert take(queue) == ["x"]
    clock.advance(60)
    assert take(queue) == ["x"]
    queue.close()


def test_a_clock_that_jumps_ahead_and_back_ticks_on(queue, clock):
    queue.schedule("s", "x", every=60)
    clock.advance(86400 * 365)
    assert take(queue) == ["x"]
    clock.advance(-86400 * 365)
    take(queue)
    clock.advance(60)
    assert take(queue) == ["x"]


def test_a_limit_that_was_lowered_since_does_not_hinder_claims(queue, clock):
    queue.schedule("s", "x" * 100, every=60)
    queue.enqueue("small")
    queue.configure(max_bytes=10)
    clock.advance(60)
    assert queue.claim().content == "small"


def test_ticks_are_enqueued_also_into_a_full_queue(open_queue, clock):
    with open_queue(max_pending=1) as queue:
        queue.enqueue("a")
        queue.schedule("s", "x", every=60)
        clock.advance(60)
        assert take(queue) == ["a", "x"]


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ({}, ValueError, "cron or every"),
        ({"cron": "* * * * *", "every": 5}, ValueError, "cron or every"),
        ({"cron": "whenever"}, ValueError, "cron pattern"),
        ({"cron": ""}, ValueError, "cron pattern"),
        ({"cron": "* * * *"}, ValueError, "cron pattern"),
        ({"cron": "60 * * * *"}, ValueError, "cron pattern"),
        ({"cron": "0 0 30 2 *"}, ValueError, "never"),
        ({"cron": 5}, TypeError, "cron"),
        ({"cron": "* * * * *", "tz": "Mars/Olympus"}, ValueError, "Mars/Olympus"),
        ({"cron": "* * * * *", "tz": ""}, ValueError, "tz"),
        ({"cron": "* * * * *", "tz": UTC}, TypeError, "tz"),
        ({"every": 60, "tz": "Europe/Berlin"}, ValueError, "tz"),
        ({"every": 0}, ValueError, "every"),
        ({"every": -5}, ValueError, "every"),
        ({"every": float("nan")}, ValueError, "every"),
        ({"every": float("inf")}, ValueError, "every"),
        ({"every": "60"}, TypeError, "every"),
        ({"every": 60, "group": ""}, ValueError, "group"),
        ({"every": 60, "key": ""}, ValueError, "key"),
        ({"every": 60, "priority": "high"}, TypeError, "priority"),
        ({"every": 60, "headers": [1]}, TypeError, "headers"),
        ({"every": 60, "name": ""}, ValueError, "name"),
        ({"every": 60, "name": "x" * 256}, ValueError, "name"),
        ({"every": 60, "name": "a\0b"}, ValueError, "name"),
        ({"every": 60, "name": 5}, TypeError, "name"),
        ({"every": 60, "content": {1, 2}}, TypeError, "content"),
        ({"every": 60, "content": float("nan")}, ValueError, "content"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_is_written(queue, arguments, error, word):
    queue.schedule("s", "old", every=99)
    with pytest.raises(error, match=word):
        queue.schedule(**{"name": "s", "content": "new", **arguments})
    (schedule,) = queue.schedules()
    assert (schedule.name, schedule.content, schedule.every) == ("s", "old", 99)


def test_content_beyond_the_limit_is_refused(open_queue):
    with open_queue(max_bytes=10) as queue:
        with pytest.raises(PayloadTooLargeError):
            queue.schedule("s", "x" * 11, every=60)
        assert queue.schedules() == []


def test_the_standard_time_zone_may_be_given_with_an_interval(queue):
    assert queue.schedule("s", "x", every=60, tz="UTC").tz == "UTC"


def test_a_time_zone_may_be_one_of_zoneinfos(queue):
    assert queue.schedule("s", "x", cron="0 9 * * *", tz=ZoneInfo("Europe/Berlin")).tz == "Europe/Berlin"


def test_a_closed_queue_has_no_schedules(queue):
    queue.close()
    for verb in (queue.schedules, lambda: queue.unschedule("s"), lambda: queue.schedule("s", "x", every=5)):
        with pytest.raises(QueueClosedError):
            verb()
