"""Whether a history can be explained: each item by one order of its calls, groups by id, claims by priority.

Every call took effect at one moment between its start and its end; one whose outcome nobody knows, at any moment after
its start, or never. The receipts say in which order the calls of an item must have taken effect, so what is left to
check is whether moments can be found in that order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proof.ledger import Operation

TERMINAL = ("mark_done", "mark_failed", "release")


@dataclass(eq=False)
class Moment:
    """Something took effect between two times, and not before what it follows."""

    name: str
    low: float
    high: float
    after: list[Moment] = field(default_factory=list)


@dataclass
class Attempt:
    """One claim of an item, what was called under its receipt, and how it ended."""

    claim: Moment
    taken: Operation | None = None
    calls: list[Operation] = field(default_factory=list)
    end: Moment | None = None
    ender: Operation | None = None
    """The accepted call that ended it; None if it was lost, or nobody knows."""


@dataclass
class Life:
    """All there is about one item."""

    id: int
    enqueue: Operation
    status: str
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def group(self) -> str | None:
        group: str | None = self.enqueue.about["group"]
        return group

    @property
    def rank(self) -> tuple[int, int]:
        return -self.enqueue.about["priority"], self.id

    @property
    def is_finished(self) -> bool:
        return self.status in ("done", "failed")


def moment(one: Operation) -> Moment:
    return Moment(f"{one.op} {one.verb}", one.start, one.end if one.known and one.end else math.inf)


def ends_for_good(one: Operation) -> bool:
    return one.verb == "mark_done" or (one.verb == "mark_failed" and one.about["again"] is None)


class History:
    """One history under examination; `wrong` is what could not be explained."""

    def __init__(self, operations: list[Operation]) -> None:
        self.wrong: list[str] = []
        self.operations = operations
        self.claims = [one for one in operations if one.verb == "claim"]
        self.unknown_claims = [one for one in self.claims if not one.known]
        going = [one for one in operations if one.verb in ("kill", "leave")]
        self.gone = {one.about["who"]: one.start for one in sorted(going, key=lambda one: -one.start)}
        self.moments: list[Moment] = []
        self.lives = self._lives()
        for life in self.lives.values():
            for attempt in life.attempts:
                self._end(life, attempt)
        self._order_of_items()
        self._order_of_groups()
        self._moments_exist()
        for claim in self.claims:
            if claim.known:
                self._choice(claim)

    def _add(self, made: Moment) -> Moment:
        self.moments.append(made)
        return made

    def _lives(self) -> dict[int, Life]:
        """Sort everything by item and attempt; complain of what has no origin, is missing or is there twice."""
        final = next(one for one in self.operations if one.verb == "final").outcome
        enqueues = {one.about["uid"]: one for one in self.operations if one.verb == "enqueue"}
        there = {uid for _, uid, _, _ in final}
        self.wrong += [f"lost: {uid}" for uid, one in enqueues.items() if one.known and uid not in there]
        calls: dict[tuple[int, int], list[Operation]] = defaultdict(list)
        taken: dict[tuple[int, int], Operation] = {}
        for one in self.operations:
            if one.raised:
                self.wrong.append(f"{one.op} {one.verb} raised {one.raised}")
            if one.verb == "claim" and one.known and one.outcome:
                receipt = (one.outcome[0], one.outcome[1])
                if receipt in taken:
                    self.wrong.append(f"two holders of item {receipt[0]}, attempt {receipt[1]}")
                taken[receipt] = one
            elif one.verb in (*TERMINAL, "extend"):
                calls[one.about["id"], one.about["attempt"]].append(one)
        lives, gaps = {}, 0
        for qid, uid, status, count in final:
            if uid not in enqueues or (enqueues[uid].known and enqueues[uid].outcome != qid):
                self.wrong.append(f"unexpected: item {qid}, {uid}")
                continue
            lives[qid] = life = Life(qid, enqueues[uid], status)
            for number in range(1, count + 1):
                known = taken.pop((qid, number), None)
                gaps += known is None
                claim = moment(known) if known else Moment("an unknown claim", self._first_unknown_claim(), math.inf)
                life.attempts.append(Attempt(self._add(claim), known, calls[qid, number]))
        if gaps > len(self.unknown_claims):
            self.wrong.append(f"{gaps} attempts were claimed by nobody")
        self.wrong += [f"item {qid} has forgotten its attempt {number}" for qid, number in taken]
        return lives

    def _first_unknown_claim(self) -> float:
        return min((one.start for one in self.unknown_claims), default=math.inf)

    def _end(self, life: Life, attempt: Attempt) -> None:
        """Find what ended an attempt, and put its calls before or behind that."""
        accepted = [one for one in attempt.calls if one.known and one.outcome]
        refused = [one for one in attempt.calls if one.known and not one.outcome]
        enders = [one for one in accepted if one.verb in TERMINAL]
        is_last = attempt is life.attempts[-1]
        if len(enders) > 1:
            self.wrong.append(f"item {life.id} was ended twice under one receipt: {[one.op for one in enders]}")
        if enders:
            attempt.ender = enders[0]
            attempt.end = self._add(moment(enders[0]))
        elif refused or not is_last or life.status != "processing":
            attempt.end = self._add(Moment(f"the loss of item {life.id}", self._lost_from(attempt), math.inf))
        if is_last:
            self._rests_as_it_should(life, attempt)
        extensions = [self._add(moment(one)) for one in accepted if one.verb == "extend"]
        for extension in extensions:
            extension.after.append(attempt.claim)
        if attempt.end:
            attempt.end.after += [attempt.claim, *extensions]
            for one in refused:
                self._add(moment(one)).after.append(attempt.end)

    def _rests_as_it_should(self, life: Life, attempt: Attempt) -> None:
        unknown = [one for one in attempt.calls if not one.known]
        possible = {"pending", "processing"}
        for one in [attempt.ender] if attempt.ender else unknown:
            if one.verb == "extend":
                continue
            ending = {"mark_done": "done", "mark_failed": "failed"}[one.verb] if ends_for_good(one) else "pending"
            possible = {ending} if attempt.ender else {*possible, ending}
        if life.status not in possible:
            self.wrong.append(f"item {life.id} rests as {life.status}, which nobody said")

    def _lost_from(self, attempt: Attempt) -> float:
        """From when on it may have ended without an accepted call: its holder's leaving, its lease, an unknown call."""
        unknown = [one.start for one in attempt.calls if not one.known and one.verb in TERMINAL]
        if attempt.taken is None:
            return min([*unknown, *self.gone.values()], default=math.inf)
        left = [self.gone[attempt.taken.who]] if attempt.taken.who in self.gone else []
        takers = [one.start for one in self.claims if self._may_take(one, attempt)]
        return min([*unknown, *left, *takers], default=math.inf)

    def _may_take(self, taker: Operation, attempt: Attempt) -> bool:
        """Whether a lease that may hold when the taker looks has run out by its clock, or reaches beyond its length."""
        now = taker.about["clock"]
        for grant in self._grants(attempt, taker):
            granted = grant.about["lease"] * 1000
            until = grant.about["clock"] + granted
            if now >= until or until - now > granted:
                return True
        return False

    def _grants(self, attempt: Attempt, seen_by: Operation) -> Iterator[Operation]:
        """The grants of an attempt that no later one had certainly replaced when somebody looked."""
        extensions = [one for one in attempt.calls if one.verb == "extend" and (not one.known or one.outcome)]
        sure = [one for one in extensions if one.known and one.end and one.end < seen_by.start]
        for grant in [*([attempt.taken] if attempt.taken else []), *extensions]:
            if not any(grant.known and grant.end and other.start > grant.end for other in sure):
                yield grant

    def _order_of_items(self) -> None:
        """Ids are given in the order of arrival; each attempt follows the end of the one before."""
        before: Moment | None = None
        for life in sorted(self.lives.values(), key=lambda life: life.id):
            arrival = self._add(moment(life.enqueue))
            arrival.after += [before] if before else []
            before = follows = arrival
            for attempt in life.attempts:
                attempt.claim.after.append(follows)
                follows = attempt.end or attempt.claim

    def _order_of_groups(self) -> None:
        """An item of a group is first claimed when all before it in the group are finished."""
        groups = defaultdict(list)
        for life in sorted(self.lives.values(), key=lambda life: life.id):
            if life.group:
                groups[life.group].append(life)
        for group, lives in groups.items():
            for place, life in enumerate(lives):
                for before in lives[:place] if life.attempts else ():
                    if not before.is_finished:
                        self.wrong.append(f"group {group}: item {life.id} was claimed before {before.id} was finished")
                    elif before.attempts and before.attempts[-1].end:
                        life.attempts[0].claim.after.append(before.attempts[-1].end)

    def _moments_exist(self) -> None:
        """Give each moment the earliest time that it can have; complain where that is too late."""
        earliest: dict[Moment, float] = {}
        for one in TopologicalSorter({made: made.after for made in self.moments}).static_order():
            earliest[one] = max([one.low, *(earliest[before] for before in one.after)])
            if earliest[one] > one.high or math.isinf(earliest[one]):
                self.wrong.append(f"no order explains {one.name}")
                earliest[one] = one.low

    def _choice(self, claim: Operation) -> None:
        """What was certainly there to be had during the whole claim was not passed over."""
        chosen = self.lives.get(claim.outcome[0]) if claim.outcome else None
        for life in self.lives.values():
            if claim.about["group"] not in (None, life.group) or not self._is_head(life, claim):
                continue
            if not any(low < claim.start and claim.end < high for low, high in self._waits(life, claim)):
                continue
            if claim.outcome is None:
                self.wrong.append(f"{claim.op} found nothing, but item {life.id} was waiting")
            elif chosen and claim.about["group"] is None and life.rank < chosen.rank:
                self.wrong.append(f"{claim.op} took item {chosen.id} before item {life.id}")

    def _is_head(self, life: Life, claim: Operation) -> bool:
        """Whether nothing before it in its group can have been unfinished when the claim began."""
        for other in self.lives.values():
            if life.group and other.group == life.group and other.id < life.id:
                ender = other.attempts[-1].ender if other.is_finished and other.attempts else None
                if ender is None or ender.end is None or ender.end >= claim.start:
                    return False
        return True

    def _waits(self, life: Life, claim: Operation) -> Iterator[tuple[float, float]]:
        """When the item was certainly waiting, or held under a lease that had certainly run out for this claim."""
        since: float | None = life.enqueue.end if life.enqueue.known else None
        for attempt in life.attempts:
            if since is not None:
                yield since, attempt.claim.low
            since = None
            if attempt.ender and not ends_for_good(attempt.ender):
                since = attempt.ender.end
            elif attempt is life.attempts[-1] and attempt.end is None and self._has_run_out(attempt, claim):
                since = attempt.taken.end if attempt.taken else None
        if since is not None:
            yield since, math.inf

    def _has_run_out(self, attempt: Attempt, claim: Operation) -> bool:
        if attempt.taken is None or not all(one.known for one in attempt.calls):
            return False
        grants = [attempt.taken, *(one for one in attempt.calls if one.verb == "extend" and one.outcome)]
        return all(claim.about["clock"] >= one.about["clock"] + one.about["lease"] * 1000 for one in grants)


def violations(operations: list[Operation]) -> list[str]:
    return History(operations).wrong
