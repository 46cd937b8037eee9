"""The kill storm: whoever is killed whenever, nothing acknowledged is lost and nothing is finished twice."""

from __future__ import annotations

import os
import sqlite3
import time

import pytest
from membox_queue import Queue

from proof import ledger, storm
from proof.nursery import run
from proof.total_queue import Findings, check, left

A_ROUND = 250
"""Kills on one file."""


@pytest.mark.parametrize(
    "kills", [pytest.param(60, id="short"), pytest.param(10_000, id="long", marks=pytest.mark.proof)]
)
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_finished_twice_whoever_is_killed_when(tmp_path, seed, kills):
    killed, found, began = 0, Findings(), time.monotonic()
    while killed < kills:
        path, book = tmp_path / f"{seed}.db", tmp_path / f"{seed}.ledger"
        said = run("storm", path, book, min(A_ROUND, kills - killed), seed)
        assert said["crashed"] == [], said["stderr"]
        assert not said["refused"]
        here = check(ledger.read(book), *left(path))
        assert here.wrong == [], f"seed {seed}"
        found.add(here)
        killed += said["kills"]
        seed += 1
        path.unlink()
        book.unlink()
    print(f"{killed} kills in {time.monotonic() - began:.0f} s: {found}")
    assert min(found.acknowledged, found.accepted, found.done) > 0


# The check itself: what it lets pass is worth nothing unless it sees harm.


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory):
    """The files of some rounds in which nobody was killed."""
    directory = tmp_path_factory.mktemp("storm")
    path, book = directory / "memory.db", directory / "ledger"
    with Queue(path) as queue:
        for role, rounds in ((storm.Producer, 40), (storm.Stranger, 2), (storm.Worker, 30), (storm.Drainer, 1)):
            one = role(path, book, role.__name__)
            for _ in range(rounds):
                one.round(queue)
    storm.calm(path, book, 0)
    assert check(ledger.read(book), *left(path)).wrong == []
    return path, book


@pytest.fixture
def after(aftermath, tmp_path):
    """Do something to a copy of the file, or to the ledger, and say what the check finds."""
    path, book = aftermath

    def after(statement=None, change=None):
        copy = tmp_path / "copy.db"
        copy.write_bytes(path.read_bytes())
        if statement:
            connection = sqlite3.connect(copy)
            with connection:
                assert connection.execute(statement).rowcount > 0
            connection.close()
        operations = ledger.read(book)
        if change:
            change(operations)
        return {line.partition(":")[0] for line in check(operations, *left(copy)).wrong}

    return after


def first(operations, verb):
    return next(one for one in operations if one.verb == verb and one.known and one.outcome)


A_DONE_ITEM = "(SELECT min(id) FROM ingest_queue WHERE status = 'done' AND result IS NOT NULL)"

HARM = {
    "lost": f"DELETE FROM ingest_queue WHERE id = {A_DONE_ITEM}",
    "doubled": "INSERT INTO ingest_queue (content, content_type, status, error)"
    f" SELECT content, content_type, 'failed', '' FROM ingest_queue WHERE id = {A_DONE_ITEM}",
    "unexpected": "INSERT INTO ingest_queue (content, status, error) VALUES ('stranger|0|', 'failed', '')",
    "altered": f"UPDATE ingest_queue SET content = content || 'AAAA' WHERE id = {A_DONE_ITEM}",
    "stuck": f"UPDATE ingest_queue SET status = 'processing' WHERE id = {A_DONE_ITEM}",
    "undone": "UPDATE ingest_queue SET status = 'failed', error = 'x'",
    "overwritten": "UPDATE ingest_queue SET result = '{\"op\": \"another\"}' WHERE status = 'done'",
    "done by nobody": f"UPDATE ingest_queue SET attempt = attempt + 1 WHERE id = {A_DONE_ITEM}",
    "torn": "DELETE FROM ingest_queue WHERE id % 2",
    "given up too early or too late": "UPDATE ingest_queue SET status = 'failed', retries = 9, error = 'vanished'",
}


@pytest.mark.parametrize("kind", HARM)
def test_the_check_sees_harm_in_the_file(after, kind):
    assert kind in after(HARM[kind])


def test_the_check_sees_a_second_accepted_call(after):
    def change(operations):
        one = first(operations, "mark_done")
        operations.append(ledger.Operation("x.1", "mark_done", one.about, one.start, one.end, True))

    assert "done twice" in after(change=change)


def test_the_check_sees_a_receipt_in_two_hands(after):
    def change(operations):
        one = first(operations, "claim")
        operations.append(ledger.Operation("x.1", "claim", {}, one.start, one.end, one.outcome))

    assert "two holders" in after(change=change)


def test_the_check_sees_a_claim_of_what_was_done(after):
    def change(operations):
        one = first(operations, "mark_done")
        (qid, attempt), late = one.about["receipts"][0], one.end + 1
        operations.append(ledger.Operation("x.1", "claim", {}, late, late + 1, [(qid, attempt + 1)]))

    assert "revived" in after(change=change)


def test_the_check_sees_a_rolled_back_item_that_is_there(after):
    def change(operations):
        first(operations, "enqueue").verb = "roll back"

    assert "unexpected" in after(change=change)


def test_a_stump_in_the_ledger_swallows_no_other_record(tmp_path):
    path = tmp_path / "ledger"
    pen = ledger.Ledger(path, "a")
    op = pen.begin("enqueue")
    os.write(pen.file, b'\n{"op": "a.1", "ver')
    pen.end(op, [1])
    assert [(one.op, one.outcome) for one in ledger.read(path)] == [("a.0", [1])]
