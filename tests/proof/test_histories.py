"""Histories of several processes: every one can be explained by an order in which the calls took effect."""

from __future__ import annotations

import time

import pytest

from proof import ledger
from proof.history_check import violations
from proof.ledger import Operation
from proof.nursery import run

AT_ONCE = 50


@pytest.mark.parametrize(
    "count", [pytest.param(10, id="short"), pytest.param(1000, id="long", marks=pytest.mark.proof)]
)
@pytest.mark.timeout(3600)
def test_every_history_can_be_explained(tmp_path, seed, count):
    began, calls, processes = time.monotonic(), 0, 0
    for first in range(seed, seed + count, AT_ONCE):
        seeds = range(first, min(first + AT_ONCE, seed + count))
        processes += run("histories", tmp_path, first, len(seeds))["processes"]
        for one in seeds:
            book = tmp_path / f"{one}.ledger"
            operations = ledger.read(book)
            assert violations(operations) == [], f"seed {one}"
            calls += len(operations)
            book.unlink()
    print(f"{count} histories, {processes} processes, {calls} calls in {time.monotonic() - began:.0f} s")


# The check itself, on a history that is in order and on what is made of it.

LEASE = 30


class Made:
    """A history made by hand: one call after the other, ten apart, each five long."""

    def __init__(self):
        self.calls, self.clock = {}, 0

    def add(self, name, verb, outcome, who="p", **about):
        start = 10 * len(self.calls) + 10
        about = {"clock": self.clock, **about}
        self.calls[name] = Operation(f"{who}.{name}", verb, about, start, start + 5, outcome)

    def enqueue(self, qid, priority=0, group=None):
        self.add(f"enqueue {qid}", "enqueue", qid, uid=f"u{qid}", priority=priority, group=group)

    def claim(self, name, qid, attempt, who="p"):
        outcome = qid and [qid, attempt]
        self.add(name, "claim", outcome, who, group=None, lease=LEASE)

    def call(self, name, verb, qid, attempt, outcome=True, **about):
        self.add(name, verb, outcome, id=qid, attempt=attempt, **about)

    def violations(self):
        return violations(list(self.calls.values()))


@pytest.fixture
def made():
    made = Made()
    made.enqueue(1, group="g")
    made.enqueue(2, group="g")
    made.enqueue(3, priority=5)
    made.enqueue(4)
    made.claim("claim 3", 3, 1)
    made.call("done 3", "mark_done", 3, 1)
    made.claim("claim 1", 1, 1)
    made.call("release 1", "release", 1, 1)
    made.call("late 1", "mark_done", 1, 1, outcome=False)
    made.claim("claim 1 again", 1, 2)
    made.call("extend 1", "extend", 1, 2, lease=60)
    made.call("done 1", "mark_done", 1, 2)
    made.claim("claim 2", 2, 1)
    made.clock = LEASE * 1000
    made.claim("claim 2 again", 2, 2, who="q")
    made.call("late 2", "mark_done", 2, 1, outcome=False)
    made.call("fail 2", "mark_failed", 2, 2, again=None)
    made.claim("claim 4", 4, 1)
    made.claim("nothing", None, None)
    made.add(
        "final",
        "final",
        [[1, "u1", "done", 2], [2, "u2", "failed", 2], [3, "u3", "done", 1], [4, "u4", "processing", 1]],
    )
    assert made.violations() == []
    return made


def swap(made, one, other):
    """Let two calls have happened at each other's time."""
    a, b = made.calls[one], made.calls[other]
    a.start, a.end, b.start, b.end = b.start, b.end, a.start, a.end


def duplicate_the_claim(made):
    made.claim("twin", 3, 1, who="q")


def forget_the_item(made):
    made.calls["final"].outcome.pop(2)
    del made.calls["claim 3"], made.calls["done 3"]


def invent_an_item(made):
    made.calls["final"].outcome.append([5, "u5", "pending", 0])


def invent_an_attempt(made):
    made.calls["final"].outcome[3][3] = 2


def forget_an_attempt(made):
    made.calls["final"].outcome[1][3] = 1


def accept(name):
    def change(made):
        made.calls[name].outcome = True

    return change


def refuse(name):
    def change(made):
        made.calls[name].outcome = False

    return change


def rest_as(place, status):
    def change(made):
        made.calls["final"].outcome[place][2] = status

    return change


def take_the_lease_away_early(made):
    made.calls["claim 2 again"].about["clock"] -= 1


def pass_over_what_waits(made):
    made.calls["nothing"].start, made.calls["nothing"].end = 51, 52
    made.calls["claim 3"].start = 53


def leave_an_expired_claim(made):
    made.calls["nothing"].about["clock"] = made.calls["claim 4"].about["clock"] + LEASE * 1000


def raise_priority(made):
    made.calls["enqueue 4"].about["priority"] = 9


MUTATIONS = {
    "a claim before the end of the claim before it": lambda made: swap(made, "release 1", "claim 1 again"),
    "a claim before its enqueue": lambda made: swap(made, "enqueue 3", "claim 3"),
    "an end before its claim": lambda made: swap(made, "claim 3", "done 3"),
    "a group out of order": lambda made: swap(made, "claim 2", "claim 1 again"),
    "two of a group at once": lambda made: swap(made, "claim 2", "done 1"),
    "ids against the order of arrival": lambda made: swap(made, "enqueue 1", "enqueue 2"),
    "a receipt in two hands": duplicate_the_claim,
    "a lost item": forget_the_item,
    "an item from nowhere": invent_an_item,
    "an attempt from nowhere": invent_an_attempt,
    "an attempt that is gone": forget_an_attempt,
    "a late end that was accepted": accept("late 1"),
    "a late end that was accepted after a loss": accept("late 2"),
    "a good end that was refused": refuse("done 3"),
    "an extension that was refused": refuse("extend 1"),
    "a release that was refused": refuse("release 1"),
    "done without anybody's word": rest_as(3, "done"),
    "failed, but done": rest_as(0, "failed"),
    "pending, but done": rest_as(2, "pending"),
    "a lease that ended too early": take_the_lease_away_early,
    "nothing found though something waited": pass_over_what_waits,
    "nothing found though a lease had run out": leave_an_expired_claim,
    "a lower priority first": raise_priority,
    "a later item first": lambda made: swap(made, "claim 4", "claim 2"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_the_check_sees_what_cannot_be(made, mutation):
    MUTATIONS[mutation](made)
    assert made.violations() != []


def test_the_check_lets_overlapping_calls_have_happened_in_either_order(made):
    first, second = made.calls["release 1"], made.calls["claim 1 again"]
    first.start, first.end, second.start, second.end = 80, 95, 79, 96
    late = made.calls["late 1"]
    late.start, late.end = 97, 98
    assert made.violations() == []


def test_the_check_allows_for_calls_of_the_dead(made):
    made.calls["done 3"].end = None
    assert made.violations() == []
    made.calls["final"].outcome[2][2] = "processing"
    assert made.violations() == []
