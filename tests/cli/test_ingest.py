"""ingest: accepted now, handled later, at once, or in a worker of its own."""

import json
import threading

import pytest
from membox_queue import Queue


@pytest.fixture
def files(folder):
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("first ä")
    (folder / "notes" / "b.md").write_text("second")
    (folder / "notes" / "raw.bin").write_bytes(b"\xff\x00")
    return folder / "notes"


def test_files_are_accepted_with_what_they_say_about_themselves(run, files, path):
    ended = run("ingest", "notes/a.md", "notes/b.md", "--priority", 5, "--group", "g", "--delay", "5m")
    assert ended.code == 0
    assert ended.out.startswith("accepted 2 items (1–2) in ")
    assert ended.out.endswith(" ms · 2 pending · worker: none\n")
    with Queue(path) as queue:
        item = queue.get(1)
        assert (item.content, item.source_path, item.priority, item.group) == ("first ä", str(files / "a.md"), 5, "g")
        assert item.project
        assert item.doc_date
        assert item.run_at is not None
        assert queue.get(2).content == "second"


def test_the_standard_input_as_text_json_and_bytes(call, queue):
    assert call("ingest", "-", "--project", "p", stdin="über").code == 0
    told = json.loads(call("ingest", "-", "--as", "json", "--key", "k", "--json", stdin='{"a": [1]}').out)
    assert (told["ids"], told["pending"], told["worker"]) == ([2], 2, "none")
    assert call("ingest", "-", "--as", "bytes", stdin=b"\xff").code == 0
    assert [item.content for item in queue.items()] == ["über", {"a": [1]}, b"\xff"]
    assert (queue.get(1).project, queue.get(1).source_path) == ("p", None)
    assert call("ingest", "-", "--key", "k", stdin="again").out.startswith("accepted item 2 ")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["notes/a.md", "notes/missing.md"], 1, "there is no file notes/missing.md; nothing was accepted"),
        (["notes/a.md", "notes"], 1, "notes is a directory; name the files in it: notes/*"),
        (["notes/a.md", "notes/raw.bin"], 1, "notes/raw.bin is not UTF-8 text; accept it with --as bytes"),
        (["notes/a.md", "--as", "json"], 1, "notes/a.md is not JSON"),
        (["notes/a.md", "--as", "yaml"], 2, "--as is text, json or bytes, not 'yaml'"),
        (["notes/a.md", "notes/b.md", "--key", "k"], 1, "one key is for one item"),
        (["notes/a.md", "--delay", "soon"], 2, "'soon' is not a time span; write seconds, or 30s, 5m, 2h, 7d"),
        (["notes/a.md", "--sync", "handlers:digest", "--spawn", "handlers:digest"], 1, "choose one"),
        (["notes/a.md", "--spawn", "nowhere:digest"], 1, "the module of 'nowhere:digest' cannot be found"),
        (["notes/a.md", "--sync", "handlers"], 1, "handlers has no queue with registered handlers; name a function"),
        (["notes/a.md", "--db", "missing/memory.db"], 1, "the directory does not exist; create it first"),
        (["notes/a.md", "--queue", ""], 1, "a queue's name has 1 to 255 bytes"),
        ([], 2, "Missing argument"),
    ],
)
def test_a_mistake_accepts_nothing(call, files, path, arguments, code, says):
    ended = call("ingest", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
    with Queue(path) as queue:
        assert queue.items() == []


def test_sync_handles_the_queue_here_and_now(run, files, folder, path):
    (folder / "bad.md").write_text("a bad one")
    ended = run("ingest", "notes/b.md", "bad.md", "--sync", "handlers:digest")
    assert ended.code == 3, "an item failed"
    assert ended.out == "item 1 done\nitem 2 failed: ValueError: the model said [red]no[/red]\n"
    told = json.loads(run("ingest", "notes/b.md", "--sync", "handlers:digest", "--json").out)
    assert [(item["id"], item["status"], item["result"]) for item in told] == [(3, "done", 6)]


def test_sync_waits_when_another_worker_is_at_it(run, files, queue, folder, path):
    # The worker is a thread of this process that lingers for two items.
    worker = threading.Thread(target=queue.drain, args=(lambda item: "theirs",), kwargs={"linger": 600, "limit": 2})
    queue.enqueue("first")
    queue.schedule("keeps it waiting", "later", every=300)
    worker.start()
    queue.wait(1, timeout=60)
    ended = run("ingest", "notes/b.md", "--sync", "handlers:digest")
    worker.join()
    assert ended.out == "item 2 done\n"
    assert queue.get(2).result == "theirs"


def test_spawn_starts_a_worker_of_its_own(run, files, queue):
    ended = run("ingest", "notes/a.md", "--spawn", "handlers:digest", "--json")
    assert json.loads(ended.out)["worker"] == "spawned"
    assert queue.wait(1, timeout=60).result == 7
