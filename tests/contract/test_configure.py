"""Settings: stored by the first who gives them, or by `configure`, for all processes and for later."""

import pickle
import threading
from datetime import timedelta

import pytest
from membox_queue import (
    DrainReport,
    PayloadTooLargeError,
    QueueClosedError,
    QueueFullError,
    Rate,
    Retry,
    SettingsConflictError,
)
from programs import PROGRAMS

DEFAULTS = {
    "lease": 60.0,
    "max_retries": 3,
    "retry": None,
    "max_bytes": 64 * 1024 * 1024,
    "max_pending": None,
    "rate": None,
    "group_rate": None,
    "keep_for": None,
    "keep_last": None,
    "keep_failed_for": None,
    "keep_content": True,
    "group_limit": 1,
}

OTHERS = {
    "lease": 5.5,
    "max_retries": 0,
    "retry": Retry(max=2, base=1.5, kind="linear"),
    "max_bytes": 100,
    "max_pending": 7,
    "rate": Rate(3, per=0.5),
    "group_rate": Rate(1),
    "keep_for": 0.0,
    "keep_last": 0,
    "keep_failed_for": 86400.0,
    "keep_content": False,
    "group_limit": 4,
}


SHARED = [name for name in OTHERS if name != "lease"]
"""The settings that hold for every process; a lease that is given to an object is its own."""


def settings(queue):
    return {name: value for name, value in queue.options.items() if name in DEFAULTS}


def test_a_queue_has_the_defaults_until_something_is_stored(queue):
    assert settings(queue) == DEFAULTS


def test_all_settings_hold_at_once_and_for_those_who_open_later(queue, open_queue):
    queue.configure(**OTHERS)
    assert settings(queue) == OTHERS
    queue.close()
    with open_queue() as later:
        assert settings(later) == OTHERS


@pytest.mark.parametrize("name", OTHERS)
def test_a_setting_is_stored_alone_and_forgotten_by_none(queue, open_queue, name):
    queue.configure(**{name: OTHERS[name]})
    with open_queue() as other:
        assert settings(other) == {**DEFAULTS, name: OTHERS[name]}
    queue.configure(**{name: None})
    assert settings(queue) == DEFAULTS
    with open_queue(**{name: OTHERS[name]}) as other:
        assert settings(other) == {**DEFAULTS, name: OTHERS[name]}


def different(name):
    """Return a value that is neither the default nor in OTHERS."""
    if "rate" in name:
        return Rate(9, per=9)
    return {"retry": Retry(max=9), "keep_content": True}.get(name, 9)


@pytest.mark.parametrize("by", ["configure", "argument"])
@pytest.mark.parametrize("name", SHARED)
def test_an_argument_may_repeat_what_is_stored_but_not_differ_from_it(open_queue, name, by):
    given = {name: OTHERS[name]}
    if by == "configure":
        open_queue().configure(**given)
    else:
        open_queue(**given).close()
    open_queue(**given).close()
    with pytest.raises(SettingsConflictError, match=rf"{name}=.*'ingest'.*configure\({name}=") as raised:
        open_queue(**{name: different(name)})
    copy = pickle.loads(pickle.dumps(raised.value))
    for error in (raised.value, copy):
        assert isinstance(error, SettingsConflictError)
        assert (error.name, error.queue) == (name, "ingest")
        assert (error.given, error.stored) == (different(name), OTHERS[name])
    with open_queue() as again:
        assert settings(again) == {**DEFAULTS, name: OTHERS[name]}


@pytest.mark.parametrize(
    ("name", "stored", "given", "said"),
    [
        ("max_retries", 2, 5, ("=2 stored", "gives max_retries=5;")),
        ("keep_last", 0, 100, ("=0 stored", "gives keep_last=100;")),
        ("keep_for", 86400.5, 10.5, ("=86400.5 stored", "gives keep_for=10.5;")),
        ("keep_content", False, True, ("=False stored", "gives keep_content=True;")),
        ("rate", Rate(3), Rate(4), (f"={Rate(3)!r} stored", f"gives rate={Rate(4)!r};")),
        ("retry", Retry(max=2), Retry(max=3), (f"={Retry(max=2)!r} stored", f"gives retry={Retry(max=3)!r};")),
    ],
)
def test_a_conflict_names_both_values_as_python_writes_them(queue, open_queue, name, stored, given, said):
    queue.configure(**{name: stored})
    with pytest.raises(SettingsConflictError) as raised:
        open_queue(**{name: given})
    assert all(part in str(raised.value) for part in said), str(raised.value)


def test_settings_belong_to_one_queue_of_the_file(queue, open_queue):
    queue.configure(lease=5, group_limit=2)
    with open_queue("mail", lease=7, group_limit=3) as mail:
        assert (mail.options["lease"], mail.options["group_limit"]) == (7, 3)
        assert (queue.options["lease"], queue.options["group_limit"]) == (5, 2)


@pytest.mark.parametrize("name", SHARED)
def test_a_setting_is_stored_by_the_first_who_gives_it(queue, open_queue, name):
    with open_queue(**{name: OTHERS[name]}) as first:
        assert settings(first) == {**DEFAULTS, name: OTHERS[name]}
    queue.claim()
    assert settings(queue) == {**DEFAULTS, name: OTHERS[name]}
    with open_queue() as later:
        assert settings(later) == {**DEFAULTS, name: OTHERS[name]}


def test_a_setting_that_is_given_as_its_default_is_stored_too(open_queue):
    open_queue(max_retries=3, group_limit=1).close()
    with pytest.raises(SettingsConflictError, match="max_retries=3"):
        open_queue(max_retries=4)
    with pytest.raises(SettingsConflictError, match="group_limit=1"):
        open_queue(group_limit=2)


def test_settings_that_are_given_later_are_added_to_those_that_are_stored(open_queue):
    open_queue(max_retries=7).close()
    open_queue(max_retries=7, keep_last=5).close()
    with open_queue(keep_last=5) as queue:
        assert settings(queue) == {**DEFAULTS, "max_retries": 7, "keep_last": 5}


def test_who_is_refused_stores_nothing(open_queue):
    open_queue(max_retries=7).close()
    with pytest.raises(SettingsConflictError):
        open_queue(keep_last=5, max_retries=8)
    with open_queue() as queue:
        assert settings(queue) == {**DEFAULTS, "max_retries": 7}


def test_a_policy_that_a_producer_gave_holds_for_a_worker_that_gives_none(open_queue):
    with open_queue(retry=Retry(max=2, base=0, jitter=0)) as producer:
        producer.enqueue("x")

    def handler(item):
        raise LookupError

    with open_queue() as worker:
        assert worker.drain(handler) == DrainReport(postponed=1, failed=1)


def test_none_leaves_a_setting_as_it_is_stored_and_configure_removes_it(open_queue):
    policy = Retry(max=5)
    open_queue(retry=policy).close()
    with open_queue(retry=None) as queue:
        assert queue.options["retry"] == policy
        queue.configure(retry=None)
        assert queue.options["retry"] is None
        with open_queue(retry=Retry(max=6)) as other:
            assert other.options["retry"] == Retry(max=6)


def test_of_those_who_open_at_once_with_different_settings_one_wins(open_queue):
    barrier = threading.Barrier(8)
    won, refused = [], []

    def open_with(number):
        barrier.wait()
        try:
            with open_queue(max_retries=number):
                won.append(number)
        except SettingsConflictError as error:
            refused.append(error.stored)

    threads = [threading.Thread(target=open_with, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert refused == won * 7


def test_of_two_processes_that_open_at_once_with_different_settings_one_wins(open_queue, address, start):
    processes = [start(PROGRAMS / "open_with.py", address, number) for number in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=30)[0].split() for process in processes]
    won = [number for number, (outcome, _) in enumerate(told) if outcome == "opened"]
    assert len(won) == 1
    assert sorted(told) == sorted([["opened", str(won[0])], *[["refused", str(won[0])]] * 3])
    with open_queue() as queue:
        assert queue.options["max_retries"] == won[0]


def test_the_lease_of_an_object_is_its_own(open_queue, clock):
    with open_queue(lease=5) as queue, open_queue(lease=7) as other, open_queue() as third:
        assert [each.options["lease"] for each in (queue, other, third)] == [5, 7, 60]
        third.configure(lease=9)
        queue.enqueue("x")
        item = queue.claim()
        assert item.lease_until - item.started_at == timedelta(seconds=5)
        assert [each.options["lease"] for each in (queue, other, third)] == [5, 7, 9]
        with open_queue(lease=8) as later:
            assert later.options["lease"] == 8


def test_nobody_overwrites_what_others_configure_at_the_same_time(open_queue):
    barrier = threading.Barrier(len(OTHERS))

    def configure(name):
        with open_queue(durability="normal") as queue:
            barrier.wait()
            queue.configure(**{name: OTHERS[name]})

    threads = [threading.Thread(target=configure, args=[name]) for name in OTHERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with open_queue() as queue:
        assert settings(queue) == OTHERS


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"lease": 0}, ValueError),
        ({"lease": -1}, ValueError),
        ({"lease": float("nan")}, ValueError),
        ({"lease": "5"}, TypeError),
        ({"max_retries": -1}, ValueError),
        ({"max_retries": 1.5}, TypeError),
        ({"retry": 5}, TypeError),
        ({"max_bytes": 0}, ValueError),
        ({"max_bytes": 2**40}, ValueError),
        ({"max_pending": 0}, ValueError),
        ({"rate": 5}, TypeError),
        ({"rate": (5, 60)}, TypeError),
        ({"group_rate": "5/m"}, TypeError),
        ({"keep_for": -1}, ValueError),
        ({"keep_for": float("inf")}, ValueError),
        ({"keep_last": -1}, ValueError),
        ({"keep_last": 1.5}, TypeError),
        ({"keep_failed_for": "a day"}, TypeError),
        ({"keep_content": 0}, TypeError),
        ({"group_limit": 0}, ValueError),
        ({"durability": "normal"}, TypeError),
        ({"leese": 5}, TypeError),
        ({"leese": None}, (TypeError, ValueError)),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_written(queue, open_queue, wrong, error):
    (name,) = wrong
    right = {"keep_last": 9} if name == "lease" else {"lease": 9}
    with pytest.raises(error, match=name):
        queue.configure(**right, **wrong)
    assert settings(queue) == DEFAULTS
    with open_queue() as other:
        assert settings(other) == DEFAULTS
    if name not in ("durability", "leese"):
        with pytest.raises(error, match=name):
            open_queue(**wrong)


def test_an_argument_that_is_refused_makes_no_file(open_queue, engine):
    with pytest.raises(ValueError, match="keep_last"):
        open_queue(keep_last=-1)
    assert not engine.exists()


def test_limits_that_are_configured_hold_for_whoever_enqueues(queue):
    queue.configure(max_pending=1, max_bytes=10)
    queue.enqueue("x")
    with pytest.raises(QueueFullError):
        queue.enqueue("y")
    with pytest.raises(PayloadTooLargeError):
        queue.enqueue("y" * 11)
    queue.configure(max_pending=None, max_bytes=None)
    queue.enqueue("y" * 11)


def test_a_policy_that_is_configured_sends_items_back(queue, clock):
    queue.configure(retry=Retry(max=2, base=10, jitter=0))
    queue.enqueue("x")
    queue.mark_failed(queue.claim(), "no")
    clock.advance(10)
    queue.mark_failed(queue.claim(), "no")
    assert queue.get(1).status == "failed"


def test_nothing_to_configure_changes_nothing(queue, open_queue):
    queue.configure(lease=5)
    queue.configure()
    with open_queue() as other:
        assert settings(other) == {**DEFAULTS, "lease": 5}


def test_a_closed_queue_cannot_be_configured(queue):
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.configure(lease=5)
