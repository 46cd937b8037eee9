"""show with a tree, answer, and --tree of cancel, retry and delete."""

import json

import pytest
from membox_queue import NewItem


@pytest.fixture
def report(queue):
    """An item that waits for a failed page, a removed one, and an approval in another queue: its id."""
    page = queue.enqueue("page", project="p")
    queue.mark_failed(queue.claim(), "no text")
    approval = NewItem("approve?", queue="approvals", expires=86_400)
    return queue.enqueue("report", after=[page, NewItem("word", after=[NewItem("letter")]), approval], if_failed="run")


def test_show_draws_the_tree(call, queue, report):
    later = queue.enqueue("later", after=[report])
    shown = call("show", report).out
    tree = shown[shown.index("tree:") :].splitlines()
    assert tree == [
        "tree: waits for 3 of 3",
        "  ├─ 1  ingest  failed  no text",
        "  ├─ 3  ingest  blocked  word",
        "  │  └─ 2  ingest  pending  letter",
        "  └─ 4  approvals  pending  approve?  expires in 23h 59m",
        "",
        f"needed by {later}",
    ]


def test_show_finds_an_item_in_any_queue(call, report):
    assert "item 4 of approvals" in call("show", 4).out
    assert call("show", 99).err == "membox-queue: no queue of the file has an item 99\n"


def test_the_json_of_an_item_names_what_it_waits_for(call, report):
    shown = json.loads(call("show", report, "--json").out)
    assert (shown["after"], shown["children"], shown["needed_by"]) == ([1, 3, 4], [], [])
    assert json.loads(call("show", 4, "--json").out)["parent"] == report


def test_an_item_without_others_shows_no_tree(call, queue):
    queue.enqueue("a")
    assert "tree" not in call("show", 1).out


def test_answer(call, queue):
    queue.enqueue_many(["a", "b", "c", NewItem("d", key="k")])
    assert call("answer", 1, '{"yes": true}') == (0, "item 1 answered\n", "")
    assert queue.get(1).result == {"yes": True}
    assert call("answer", 2, "--error", "refused by ann").code == 0
    assert (queue.get(2).status, queue.get(2).error) == ("failed", "refused by ann")
    assert json.loads(call("answer", 3, "--json").out) == {"queue": "ingest", "id": 3, "answered": True}
    assert call("answer", "--key", "k", "[1]").out == "the item with the key 'k' answered\n"
    assert queue.get(4).result == [1]
    assert call("answer", "--key", "later", "7", "--key-ttl", "1d").code == 0
    assert queue.get(key="later").result == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the item by its id, or by --key"),
        (["x"], "'x' is no id"),
        (["1", "yes"], "'yes' is not JSON; a text needs quotes"),
        (["1", "1", "2"], "give one result"),
        (["1", "1", "--error", "no"], "give one result"),
        (["9"], "item 9 of ingest is done, cancelled, or does not exist"),
        (["--key", "k"], "the item with the key 'k' of ingest is done"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(call, queue, arguments, words):
    queue.enqueue("a")
    ended = call("answer", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert words in ended.err


def test_cancel_retry_and_delete_take_the_tree(call, queue, report):
    assert call("cancel", report, "--tree").out == f"item {report} cancelled\n"
    assert [item.status for item in queue.items()] == ["failed", "cancelled", "cancelled", "cancelled"]
    assert "--tree" in call("retry", 3).err
    assert call("retry", report, "--tree").code == 0
    assert queue.counts()["failed"] == 0
    assert call("delete", 2, "--yes").code == 1
    assert call("delete", report, "--tree", "--yes").out == f"item {report} removed\n"
    assert sum(queue.counts().values()) == 0
