"""process with several handlers: of a queue, of a module, one by one."""

import shutil

import pytest
from membox_queue import Queue
from programs import PROGRAMS


@pytest.fixture
def folder(tmp_path):
    for name in ("several_app.py", "several_awaited_app.py"):
        shutil.copy(PROGRAMS / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def own(folder):
    """Open a queue of the application's own file."""
    opened = []

    def own(name, file="own.db"):
        opened.append(Queue(folder / file, name))
        return opened[-1]

    yield own
    for queue in opened:
        queue.close()


@pytest.fixture
def filled(own):
    sums, mail = own("sums"), own("mail")
    sums.enqueue({"a": 2, "b": 3})
    mail.enqueue({"to": "ann"})
    return sums, mail


@pytest.mark.parametrize("targets", [["several_app:queue"], ["several_app:add", "several_app:send"]])
def test_all_handlers_that_are_named_are_served(run, filled, targets):
    ended = run("process", *targets)
    assert (ended.code, ended.out) == (0, "2 done · 0 failed · 0 postponed · 0 retried\n"), ended.err
    assert [queue.items()[0].result for queue in filled] == [5, "ANN"]


def test_a_module_stands_for_all_its_handlers(run, filled, own):
    queue = own("ingest")
    queue.enqueue({"text": "hello"})
    assert run("process", "several_awaited_app").out.startswith("2 done")
    assert queue.get(queue.items()[0].id).result == "HELLO"
    assert filled[1].items()[0].result == "ANN"
    assert filled[0].counts()["pending"] == 1, "no handler of that module"


def test_a_queue_and_one_of_its_handlers_are_served_once(run, filled):
    assert run("process", "several_app:queue", "several_app:add").out.startswith("2 done")


def test_a_registered_handler_serves_no_other_queue(run, filled):
    ended = run("process", "mail=several_app:add")
    assert ended.code != 0
    assert "'several_app:add' is registered for the queue 'sums'; leave 'mail=' out" in ended.err
    assert [queue.counts()["pending"] for queue in filled] == [1, 1]


def test_a_plain_function_serves_the_file_of_the_registered_handlers(run, filled, own, folder):
    (folder / "plain.py").write_text("def shout(item): return item.content.upper()\n")
    notes = own("notes")
    notes.enqueue("hello")
    assert run("process", "several_app:queue", "notes=plain:shout").out.startswith("3 done")
    assert notes.items()[0].result == "HELLO"


def test_one_of_several_queues_may_be_chosen(run, filled):
    assert run("process", "several_app:queue", "--queue", "mail").out.startswith("1 done")
    assert [queue.counts()["done"] for queue in filled] == [0, 1]


def test_plain_functions_are_named_with_their_queues(run, own, folder):
    one, two = own("one", "other.db"), own("two", "other.db")
    one.enqueue("a")
    two.enqueue("b")
    ended = run("process", "one=several_app:plain", "two=several_app:bad", "--db", "other.db", logs=True)
    assert (ended.code, ended.out) == (3, "1 done · 1 failed · 0 postponed · 0 retried\n")
    assert one.get(1).result == ["plain", "a"]
    assert run("process", "one=several_app:plain", "--db", "other.db").code == 0
    assert not (folder / "memory.db").exists()


def test_failed_items_of_all_queues_are_brought_back(run, filled):
    for queue in filled:
        queue.mark_failed(queue.claim(), "once")
    assert run("process", "several_app:queue", "--retry-failed").out.startswith("2 done · 0 failed · 0 postponed · 2 r")


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (
            ["several_app:plain", "several_app:add"],
            "several_app:plain does not say which queue it serves; give 'queue=",
        ),
        (["several_app:empty"], "'several_app:empty' is a queue without handlers; register one with @empty.handler"),
        (["several_app:add", "sums=several_app:plain"], "the queue 'sums' has two handlers"),
        (["several_app"], "the handlers are in several files: "),
        (["x=several_app:queue"], "'x=several_app:queue' must name one queue and one function"),
        (["=several_app:plain"], "'=several_app:plain' must name one queue and one function"),
        (["several_app:queue", "--queue", "nope"], "no handler for the queue 'nope'; there are some for: sums, mail"),
        (["shutil"], "shutil has no queue with registered handlers; name a function of it: 'shutil:function'"),
        (["several_app:"], "a worker's handler is named 'package.module:function', not 'several_app:'"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(run, targets, says):
    ended = run("process", *targets)
    assert (ended.code, ended.out) == (1, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_a_drain_makes_no_file(run, folder):
    ended = run("process", "a=several_app:plain", "b=several_app:plain", "--db", "missing.db")
    assert (ended.code, "there is no file missing.db" in ended.err) == (1, True)
    assert not (folder / "missing.db").exists()
