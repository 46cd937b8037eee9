"""The programs of examples/, as people start them: processes of their own, on the loopback interface only."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from membox_queue import Queue

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOP = EXAMPLES / "shop"


@pytest.fixture
def begin(tmp_path):
    """Start a program in the test's own directory; none outlives the test."""
    started = []

    def begin(*command, cwd=tmp_path, **variables):
        environment = {name: value for name, value in os.environ.items() if name != "MEMBOX_QUEUE_DB"}
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen([sys.executable, *map(str, command)], cwd=cwd, env=environment, **pipes)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """What a program wrote until it ended well."""
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0, out
    return out


def line_with(process, words):
    """Read until a line has these words, and return it."""
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"the program ended without {words!r}")


def stopped(process):
    process.send_signal(signal.SIGTERM)
    return ended(process)


def test_a_recurring_item_plans_its_successor(begin, tmp_path):
    for round in (1, 2):
        out = ended(begin(EXAMPLES / "recurring.py", 1))
        assert (f"read entry {round}" in out, f"indexed entry {round}" in out) == (True, True)
    with Queue(tmp_path / "recurring.db", "feeds") as feeds:
        assert (feeds.counts()["done"], feeds.counts()["pending"]) == (2, 1)
        assert feeds.get(key="feed").content == 3


def test_orders_are_charged_packed_and_shipped_once(begin, tmp_path):
    first = ended(begin(EXAMPLES / "orders.py")).splitlines()
    assert "DrainReport(done=3, moved=5, failed=1, postponed=1)" in first
    assert first[-5:] == [
        "ann-lamp: done in ship (charge → pack → ship) {'parcel': 1}",
        "ben-chair: failed in charge (charge) the card has expired",
        "cid-voucher: done in ship (charge → ship) {'parcel': 2}",
        "dan-chair: done in ship (charge → pack → pack → ship) {'parcel': 3}",
        "stock: {'chair': 4, 'lamp': 4}",
    ]
    assert ended(begin(EXAMPLES / "orders.py")).splitlines() == ["DrainReport()", *first[-5:]]
    connection = sqlite3.connect(tmp_path / "orders.db")
    assert connection.execute("SELECT customer FROM parcels ORDER BY number").fetchall() == [
        ("ann",),
        ("cid",),
        ("dan",),
    ]
    connection.close()


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        ("yes", ["done: How do queues keep their promises?", "- A worker that dies loses its lease"]),
        ("no", ["failed: not approved: you said no"]),
    ],
)
def test_research_waits_for_a_person_and_does_no_step_again(begin, reply, end):
    program = EXAMPLES / "research.py"
    first = ended(begin(program)).splitlines()
    assert first[0] == "planning: How do queues keep their promises?"
    assert sorted(first[1:4]) == ["reading:  lease.example", "reading:  moved.example", "reading:  wal.example"]
    assert "without ['moved.example: the page is empty']" in first[-2]
    assert first[-1] == "blocked: python research.py yes"
    assert ended(begin(program)).splitlines() == ["DrainReport()", *first[-2:]]
    answered = ended(begin(program, reply)).splitlines()
    assert (answered[0], answered[2 : 2 + len(end)]) == ("answered", end)
    later = ended(begin(program)).splitlines()
    assert (later[0], later[1 : 1 + len(end)]) == ("DrainReport()", end)


def test_the_table_names_every_example():
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [
        path.name for path in EXAMPLES.glob("**/*.py") if path.name not in ("env.py",) and path.name not in table
    ] == []


def test_notes_are_indexed_once_by_a_worker_that_comes_and_goes(begin, tmp_path, until):
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in {"a.md": "SQLite is small\n\nqueues", "b.md": "sqlite again", "empty.md": " \n"}.items():
        (notes / name).write_text(text)
    (notes / "picture.md").write_bytes(b"\xff\xd8")
    program = EXAMPLES / "notes.py"
    said = ended(begin(program, "add", "notes"))
    assert "picture.md is not UTF-8 text" in said
    assert said.endswith("accepted 3 notes, started a worker\n")

    def search():
        return ended(begin(program, "search", "SQLITE")).splitlines()

    until(lambda: not any("pending" in line for line in search()), limit=60)
    assert search() == [
        "a.md:1: SQLite is small",
        "b.md:1: sqlite again",
        "(not indexed: empty.md: the note is empty)",
    ]
    # A second run accepts nothing, also now that all is done. A change is accepted, and so is changing it back.
    assert ended(begin(program, "add", "notes")).endswith("accepted 0 notes\n")
    for number, text in enumerate(["changed", "SQLite is small\n\nqueues"], 1):
        (notes / "a.md").write_text(text)
        os.utime(notes / "a.md", ns=(number, number))
        assert "accepted 1 notes" in ended(begin(program, "add", "notes"))
    until(lambda: not any("pending" in line for line in search()), limit=60)
    assert search()[0] == "a.md:1: SQLite is small"
    with Queue(tmp_path / "notes.db") as queue:
        assert queue.options["retry"].max == 3
        until(lambda: not queue.worker_is_alive())


def test_agents_chat_in_order_and_stop_when_told(begin, tmp_path):
    program = EXAMPLES / "chat.py"
    server = begin(program, "serve")
    line_with(server, "serving")
    ann = begin(program, "ask", "ann", "is it busy?")
    ben = begin(program, "ask", "ben", "what now?")
    assert ended(ann).splitlines()[1] == "is it busy? → word0 word1 word2"
    assert ended(ben).splitlines()[1] == "what now? → word0 word1 word2"
    endless = begin(program, "ask", "ann", "an endless story")
    id = line_with(endless, "asked as").split()[-1]
    behind = begin(program, "ask", "ann", "and then?")
    line_with(behind, "asked as")
    assert ended(begin(program, "cancel", id)) == "cancelled\n"
    assert ended(endless).endswith("no answer: cancelled\n")
    assert ended(behind) == "and then? → word0 word1 word2\n"
    assert ended(begin(program, "cancel", id)) == "nothing to cancel\n"
    assert "answered 3" in stopped(server)
    with Queue(tmp_path / "chat.db", "writer") as writer:
        assert (writer.counts()["done"], writer.counts()["cancelled"], writer.counts()["failed"]) == (3, 1, 0)


class Shop:
    """The running shop, as a browser uses it."""

    def __init__(self, url):
        self.url = url

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture
def shop_db(tmp_path):
    for library in ("fastapi", "sqlalchemy", "uvicorn"):
        pytest.importorskip(library)
    return tmp_path / "shop.db"


def test_an_order_and_its_mail_are_committed_together_and_the_mail_is_sent_once(begin, shop_db, until):
    variables = {"SHOP_DB": str(shop_db)}

    def begin_worker():
        return begin("-m", "membox_queue", "process", "shop:send_mail", "--watch", cwd=SHOP, **variables)

    server = begin("-m", "uvicorn", "shop:app", "--host", "127.0.0.1", "--port", "0", cwd=SHOP, **variables)
    shop = Shop(re.search(r"http://127\.0\.0\.1:\d+", line_with(server, "running on"))[0])
    assert shop.ask("/orders", {"customer": "ann", "total": 5}) == (201, {"order": 1, "mail": 1})
    assert shop.ask("/orders", {"customer": "eve", "total": -1}) == (422, {"detail": "the total is negative"})
    assert shop.ask("/orders/1") == (200, {"customer": "ann", "total": 5, "mail": "pending"})
    assert shop.ask("/health")[1] == {
        "orders": 1,
        "note": "1 mail pending — results may be incomplete",
        "failed": 0,
    }
    worker = begin_worker()
    until(lambda: shop.ask("/orders/1")[1]["mail"] == "done", limit=60)

    assert shop.ask("/orders", {"customer": "slow", "total": 7})[1]["order"] == 2
    until(lambda: shop.ask("/orders/2")[1]["mail"] == "processing", limit=60)
    worker.kill()
    worker.wait()
    Path(f"{shop_db}.go").touch()
    worker = begin_worker()
    until(lambda: shop.ask("/orders/2")[1]["mail"] == "done", limit=60)
    assert shop.ask("/health")[1] == {"orders": 2, "note": None, "failed": 0}
    assert shop.ask("/orders/3")[0] == 404
    assert stopped(worker).splitlines()[-1].startswith("1 done")
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    connection = sqlite3.connect(shop_db)
    assert connection.execute("SELECT order_id, text FROM sent_mails ORDER BY order_id").fetchall() == [
        (1, "Dear ann, thank you for order 1."),
        (2, "Dear slow, thank you for order 2."),
    ]
    connection.close()


def test_alembic_has_nothing_to_change_in_the_shop(begin, shop_db, tmp_path):
    pytest.importorskip("alembic")
    variables = {"SHOP_DB": str(shop_db), "PYTHONPATH": str(SHOP)}
    ended(begin("-c", "import shop; shop.queue.enqueue({})", **variables))
    ended(begin("-m", "alembic", "init", "migrations", **variables))
    shutil.copy(SHOP / "env.py", tmp_path / "migrations" / "env.py")
    assert "No new upgrade operations detected" in ended(begin("-m", "alembic", "check", **variables))
