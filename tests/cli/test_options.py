"""Options that every command has: --json, --db and --queue before or behind the command, and the main help."""

import json

import pytest
from membox_queue import Queue
from membox_queue.cli.app import app
from typer.main import get_command

FOR_PEOPLE = {"demo"}
"""Commands without --json."""


def commands(group=None, before=()):
    """Every command as it is typed, with the command itself."""
    for name, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


@pytest.mark.parametrize("typed", [typed for typed, _ in commands()], ids=" ".join)
def test_every_command_has_json(call, typed):
    assert ("--json" in call(*typed, "--help").out) == (typed[0] not in FOR_PEOPLE)


@pytest.fixture
def mixed(queue):
    """Item 1 failed, item 2 cancelled, item 3 delayed, item 4 pending."""
    queue.enqueue_many(["a", "b"])
    queue.mark_failed(queue.claim(), "no")
    queue.cancel(2)
    queue.enqueue("c", delay=600)
    queue.enqueue("d")
    return queue


BY_ID = [
    (["retry", 1, 4], {"count": 1, "ids": [1], "unchanged": [4]}),
    (["replay", 1, 9], {"count": 1, "ids": [1], "unchanged": [9], "copies": [5]}),
    (["run-now", 3, 4], {"count": 1, "ids": [3], "unchanged": [4]}),
    (["cancel", 4, 2], {"count": 1, "ids": [4], "unchanged": [2]}),
    (["delete", 4, 9, "--yes"], {"count": 1, "ids": [4], "unchanged": [9]}),
]


@pytest.mark.parametrize(("typed", "says"), BY_ID, ids=lambda given: given[0] if isinstance(given, list) else "")
def test_what_changes_items_by_id_says_which_as_json(call, mixed, typed, says):
    ended = call(*typed, "--json")
    assert json.loads(ended.out) == {"queue": "ingest", **says}
    assert ended.code == 1
    assert f"item {says['unchanged'][0]} of ingest" in ended.err


OTHERS = [
    (["retry", "--all"], {"queue": "ingest", "count": 1, "unchanged_count": 0}),
    (["purge", "--yes"], {"queue": "ingest", "status": "failed", "count": 1}),
    (["prune", "--older-than", 0, "--status", "failed", "-y"], {"queue": "ingest", "status": "failed", "count": 1}),
    (["pause"], {"queue": "ingest", "paused": True, "changed": True}),
    (["resume"], {"queue": "ingest", "paused": False, "changed": False}),
    (["schedule", "remove", "beat"], {"queue": "ingest", "name": "beat", "removed": True}),
]


@pytest.mark.parametrize(("typed", "says"), OTHERS, ids=lambda given: given[0] if isinstance(given, list) else "")
def test_what_changes_more_says_how_much_as_json(call, mixed, clock, typed, says):
    mixed.schedule("beat", "tick", every=60)
    clock.advance(1)
    ended = call(*typed, "--json")
    assert (ended.code, json.loads(ended.out), ended.err) == (0, says, "")


def test_the_other_commands_about_a_file_or_a_schedule_as_json(call, queue, folder):
    added = json.loads(call("schedule", "add", "beat", "tick", "--every", "5m", "--json").out)
    assert (added["name"], added["every"], added["content"]) == ("beat", 300, "tick")
    told = json.loads(call("compact", "--json").out)
    assert (told["file"], told["bytes"]) == ("memory.db", (folder / "memory.db").stat().st_size)
    told = json.loads(call("backup", "copy.db", "--json").out)
    assert told == {"file": "memory.db", "copy": "copy.db", "bytes": (folder / "copy.db").stat().st_size}
    assert json.loads(call("top", "--json").out)["queue"] == "ingest"


def test_replay_of_nothing_that_is_there_says_only_why(call, queue):
    ended = call("replay", 9)
    assert (ended.code, ended.out) == (1, "")
    assert "item 9 of ingest does not exist" in ended.err


@pytest.fixture
def letters(folder):
    with Queue(folder / "other.db", "letters") as queue:
        queue.enqueue("x")
        queue.schedule("beat", "tick", every=60)
        yield queue


@pytest.mark.parametrize(
    "typed",
    [
        ["--db", "other.db", "--queue", "letters", "--json", "status"],
        ["--db=other.db", "--queue=letters", "status", "--json"],
        ["--db", "wrong.db", "--queue", "letters", "status", "--db", "other.db", "--json"],
    ],
    ids=["before", "with =", "the last one counts"],
)
def test_options_before_the_command_mean_the_same(call, letters, typed):
    seen = json.loads(call(*typed).out)
    assert (seen["queue"], seen["counts"]["pending"]) == ("letters", 1)


def test_options_before_a_command_of_two_words_and_between_them(call, letters):
    for typed in (["--db", "other.db", "schedule", "--queue", "letters", "list"], ["schedule", "list"]):
        ended = call(*typed, *(["--db", "other.db", "--queue", "letters"] if typed[0] == "schedule" else []), "--json")
        assert [one["name"] for one in json.loads(ended.out)] == ["beat"]


def test_options_before_process_reach_its_own_parser(run, letters):
    ended = run("--db", "other.db", "--queue", "letters", "--json", "process", "handlers:digest")
    assert json.loads(ended.out)["done"] == 1
    assert letters.pending() == 0


def test_the_environment_does_not_override_an_option_before_the_command(run, letters):
    ended = run("--db", "other.db", "status", "--queue", "letters", MEMBOX_QUEUE_DB="wrong.db")
    assert ended.code == 0
    assert "pending       1" in ended.out


def test_a_command_without_a_queue_leaves_that_option_out(call, letters):
    assert call("--db", "other.db", "--queue", "letters", "backup", "copy.db").code == 0
    assert call("backup", "copy2.db", "--db", "other.db", "--queue", "letters").code == 2


def test_options_without_a_command_are_wrong_usage(call):
    ended = call("--db", "other.db")
    assert ended.code == 2
    assert "Missing command" in ended.err


@pytest.mark.parametrize("typed", [["--help"], ["-h"], []], ids=["--help", "-h", "nothing"])
def test_the_main_help_fits_a_terminal_of_24_lines(call, typed):
    ended = call(*typed)
    lines = (ended.out or ended.err).splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert not any("..." in line for line in lines[1:])


def test_the_main_help_at_a_terminal_is_seen_whole(terminal):
    shown = terminal("--help", size=(24, 80))
    assert shown.end() == 0
    assert shown.seen.startswith("Usage: membox-queue")
    assert shown.seen.count("\n") < 24


def test_top_and_the_version_say_what_they_do(call):
    assert "Show the status of the queue live; press q to quit." in " ".join(call("top", "--help").out.split())
    assert call("--version").out.startswith("membox-queue 0.")


@pytest.mark.parametrize(
    "typed",
    [["status"], ["top"], ["list"], ["failures"], ["show", 1], ["retry", "--all"], ["purge", "--yes"], ["resume"]],
    ids=lambda typed: typed[0],
)
def test_a_queue_that_is_not_there_is_told(call, queue, typed):
    queue.enqueue("x")
    ended = call(*typed, "--queue", "typo")
    assert ended == (1, "", "membox-queue: there is no queue 'typo' in memory.db; it has: ingest\n")
    assert list(queue.queues()) == ["ingest"]


def test_a_queue_without_items_is_known_by_its_schedule_its_pause_or_its_worker(call, folder):
    with Queue(folder / "memory.db", "new") as new:
        assert "it has: no items in any queue" in call("status", "--queue", "new").err
        new.acquire_worker_lease()
        assert call("status", "--queue", "new").code == 0
        new.release_worker_lease()
        assert call("pause", "--queue", "new").code == 0
        assert call("status", "--queue", "new").code == 0
        assert call("resume", "--queue", "new").code == 0
        new.schedule("beat", "tick", every=60)
        assert call("status", "--queue", "new").code == 0
    assert call("status").code == 0
