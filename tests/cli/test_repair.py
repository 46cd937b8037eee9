"""retry, replay, cancel, delete, purge, prune, pause, resume and schedule."""

import json

import pytest


@pytest.fixture
def failed(queue):
    """Three items, all failed for good."""
    queue.enqueue_many(["a", "b", "c"])
    for _ in range(3):
        queue.mark_failed(queue.claim(), "no", give_up=True)
    return queue


def test_retry_by_number(run, call, failed):
    assert run("retry", 1, 3) == (0, "2 items (1, 3) returned to pending\n", "")
    assert failed.counts()["pending"] == 2
    ended = call("retry", 1, 2)
    assert (ended.code, ended.out) == (1, "item 2 returned to pending\n")
    assert "item 1 of ingest is neither failed nor cancelled" in ended.err


def test_retry_all_brings_back_also_what_was_given_up(call, failed):
    failed.enqueue("in the way", key="k")
    assert call("retry", "--all") == (0, "3 items returned to pending\n", "")
    assert failed.counts()["pending"] == 4
    assert call("retry", "--all").out == "0 items returned to pending\n"


def test_what_keeps_its_key_from_another_stays_failed(call, queue):
    queue.enqueue("old", key="k")
    queue.mark_failed(queue.claim(), "no")
    queue.enqueue("new", key="k")
    assert (
        call("retry", "--all").out == "0 items returned to pending; 1 not returned, because their key is in use again\n"
    )


@pytest.mark.parametrize("arguments", [[], ["1", "--all"]])
def test_retry_wants_to_know_what(call, failed, arguments):
    assert call("retry", *arguments) == (1, "", "membox-queue: name the items, or give --all for every failed one\n")


def test_replay(call, failed):
    assert call("replay", 1, 2) == (0, "enqueued again as 2 items (4–5)\n", "")
    assert failed.get(5).content == "b"
    assert "item 9 of ingest does not exist" in call("replay", 9).err


def test_cancel(call, queue):
    queue.enqueue("x")
    assert call("cancel", 1) == (0, "item 1 cancelled\n", "")
    ended = call("cancel", 1)
    assert ended.code == 1
    assert "is finished, already cancelled, or does not exist" in ended.err


def test_delete_asks_at_a_terminal(terminal, failed):
    asked = terminal("delete", 1)
    asked.until("Remove item 1? [y/N]:")
    asked.type("n\n")
    assert asked.end() == 1
    assert failed.get(1) is not None
    asked = terminal("delete", 1)
    asked.until("[y/N]:")
    asked.type("y\n")
    assert asked.end() == 0
    assert "item 1 removed" in asked.seen
    assert failed.get(1) is None


def test_without_a_terminal_to_ask_at_nothing_is_removed(run, call, failed):
    ended = run("delete", 1)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "membox-queue: Remove item 1? There is no terminal to ask at; give --yes to do it\n"
    assert "give --yes" in call("purge").err
    assert "give --yes" in call("prune", "--older-than", 0).err
    assert failed.counts()["failed"] == 3
    assert call("delete", 1, "--yes").out == "item 1 removed\n"
    assert "item 1 of ingest does not exist" in call("delete", 1, "--yes").err


def test_purge_a_status(call, failed):
    assert call("purge", "--yes") == (0, "3 failed items removed\n", "")
    assert call("purge") == (0, "0 failed items removed\n", "")
    ended = call("purge", "--status", "finished", "--yes")
    assert ended.code == 1
    assert "there is no status 'finished'; it is one of pending, processing" in ended.err


def test_prune_what_ended_long_ago(call, failed, clock):
    clock.advance(3600)
    assert call("prune", "--older-than", "2h", "--status", "failed", "-y").out == "0 failed items removed\n"
    assert call("prune", "--older-than", "30m", "--status", "failed", "-y").out == "3 failed items removed\n"
    assert "Missing option '--older-than'" in call("prune").err
    assert "prune removes what has ended" in call("prune", "--older-than", 1, "--status", "pending", "-y").err


def test_pause_and_resume(call, queue):
    queue.enqueue("x")
    assert call("pause").out == "ingest is paused\n"
    assert call("pause").out == "ingest was paused already\n"
    assert queue.claim() is None
    assert call("resume").out == "ingest is resumed\n"
    assert call("resume").out == "ingest was not paused\n"
    assert call("pause", "--queue", "").code == 1


def test_run_now_ends_a_wait(call, queue):
    queue.enqueue("x", delay=600)
    assert call("run-now", 1).out == "item 1 due now\n"
    assert queue.claim().id == 1
    ended = call("run-now", 1)
    assert (ended.code, "item 1 of ingest does not wait for a time" in ended.err) == (1, True)


def test_what_nobody_has_claimed_in_time_is_due_now(call, queue, clock):
    queue.schedule("pulse", "x", every=60)
    assert "in 1m" in call("status").out
    clock.advance(90)
    assert "next due      now" in call("status").out
    assert call("schedule", "list").out.splitlines()[1].split()[:4] == ["pulse", "every", "1m", "now"]


def test_a_schedule_of_bytes_is_listed(call, queue):
    queue.schedule("pulse", b"\xff\x00", every=60, key="pulse")
    assert "2 bytes" in call("schedule", "list").out
    (told,) = json.loads(call("schedule", "list", "--json").out)
    assert (told["content"], told["key"]) == ("/wA=", "pulse")


def test_schedule_add_list_and_remove(run, call, queue):
    assert run("schedule", "add", "nightly", "digest", "--cron", "0 3 * * *", "--tz", "Europe/Berlin").code == 0
    assert call("schedule", "add", "pulse", '{"a": 1}', "--as", "json", "--every", "5m", "--key", "pulse").code == 0
    told = json.loads(call("schedule", "list", "--json").out)
    assert [(one["name"], one["content"], one["every"]) for one in told] == [
        ("nightly", "digest", None),
        ("pulse", {"a": 1}, 300),
    ]
    rows = [line.split() for line in call("schedule", "list").out.splitlines()]
    assert rows[1][:7] == ["nightly", "0", "3", "*", "*", "*", "Europe/Berlin"]
    assert rows[2][:3] == ["pulse", "every", "5m"]
    assert call("schedule", "remove", "pulse").out == "pulse removed\n"
    ended = call("schedule", "remove", "pulse")
    assert (ended.code, ended.err) == (1, "membox-queue: ingest has no schedule 'pulse'; it has: nightly\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x"], "give a time: either --cron '0 3 * * *' or --every 5m"),
        (["x", "--cron", "0 3 * * *", "--every", "5m"], "give a time"),
        (["x", "--cron", "sometimes"], "'sometimes' is not a cron pattern"),
        (["x", "--cron", "0 3 * * *", "--tz", "Mars/Base"], "Mars/Base"),
        (["{", "--every", "5m", "--as", "json"], "the content is not JSON"),
        (["x", "--every", "5m", "--as", "xml"], "--as is text or json, not 'xml'"),
    ],
)
def test_a_schedule_that_makes_no_sense(call, queue, arguments, says):
    ended = call("schedule", "add", "name", *arguments)
    assert ended.code in (1, 2)
    assert says in ended.err
    assert queue.schedules() == []
