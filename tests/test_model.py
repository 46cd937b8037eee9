"""The delivery model: random histories of a real queue compared, step by step, with a few lines of plain Python."""

from __future__ import annotations

import os
import signal
import sqlite3
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from membox_queue import Queue, _native

START = 1_800_000_000_000
CEILING = 3
LEASE = 60

groups = st.none() | st.sampled_from(["a", "b"])
keys = st.none() | st.sampled_from(["k", "l"])
numbers = st.integers(0, 7)


@dataclass
class Row:
    """What the model knows of an item."""

    id: int
    priority: int
    run_at: int | None
    group: str | None
    key: str | None
    ceiling: int = CEILING
    status: str = "pending"
    retries: int = 0
    attempt: int = 0
    lease_until: int = 0
    cancelled: bool = False
    gave_up: bool = False
    orphaned: bool = False
    """Its holder was killed."""

    @property
    def unfinished(self) -> bool:
        return self.status in ("pending", "processing")


class Delivery(RuleBasedStateMachine):
    """A queue and its model. `damage` is SQL that breaks the queue on purpose, to show that it would be noticed."""

    damage = ""
    steps = 0
    """Of all histories."""

    @initialize(group_limit=st.sampled_from([1, 1, 2]))
    def open(self, group_limit: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.now = START
        _native.set_clock(self.now)
        self.queue = self.another()
        if self.damage:
            connection = sqlite3.connect(self.path)
            connection.executescript(self.damage)
            connection.close()
        self.rows: dict[int, Row] = {}
        self.held: list[tuple[Any, int]] = []
        self.paused = False
        self.crashes = 0
        self.group_limit = group_limit
        self.queue.configure(group_limit=group_limit)

    def teardown(self) -> None:
        if hasattr(self, "queue"):
            self.queue.close()
            self.folder.cleanup()
        _native.set_clock(None)

    # What the model says

    def settle_time(self) -> None:
        """What a claim brings in first."""
        for row in self.rows.values():
            # A lease that reaches further than it was granted comes from a clock that went back.
            ahead = row.lease_until > self.now + LEASE * 1000
            if row.status == "processing" and (row.lease_until <= self.now or ahead or row.orphaned):
                self.lose(row)
            if row.status == "pending" and row.run_at is not None and row.run_at <= self.now:
                row.run_at = None

    def lose(self, row: Row) -> None:
        row.orphaned = False
        if row.cancelled:
            row.status = "cancelled"
            return
        row.retries += 1
        row.run_at = None
        row.status = "failed" if row.retries >= row.ceiling else "pending"

    def next_row(self, group: str | None = None) -> Row | None:
        heads = []
        for row in self.rows.values():
            if row.status != "pending" or row.run_at is not None or (group is not None and row.group != group):
                continue
            mates = [mate for mate in self.rows.values() if row.group is not None and mate.group == row.group]
            entered = [mate for mate in mates if mate.status == "pending" and (mate.run_at is None or mate.attempt > 0)]
            room = self.group_limit - sum(mate.status == "processing" for mate in mates)
            if row.group is None or row.id in sorted(mate.id for mate in entered)[: max(0, room)]:
                heads.append(row)
        first = min(heads, key=lambda row: (-row.priority, row.id), default=None)
        if first is None or first.group is None:
            return first
        # Inside a group priority counts nothing, also where several may run at once.
        return min((row for row in heads if row.group == first.group), key=lambda row: row.id)

    def holder(self, index: int) -> tuple[Any, Row | None, bool]:
        item, attempt = self.held[index % len(self.held)]
        row = self.rows.get(item.id)
        valid = row is not None and row.status == "processing" and row.attempt == attempt
        return item, row, valid

    def key_in_use(self, key: str | None) -> bool:
        return key is not None and any(row.key == key and row.unfinished for row in self.rows.values())

    # What happens

    @rule(
        priority=st.integers(-1, 2),
        delay=st.sampled_from([0, 0, 5, 90]),
        group=groups,
        key=keys,
        ceiling=st.sampled_from([None, None, 1, 2]),
    )
    def enqueue(self, priority: int, delay: int, group: str | None, key: str | None, ceiling: int | None) -> None:
        id = self.queue.enqueue("x", priority=priority, delay=delay, group=group, key=key, max_retries=ceiling)
        existing = [row for row in self.rows.values() if key is not None and row.key == key and row.unfinished]
        if existing and not existing[0].cancelled:
            assert id == existing[0].id
        else:
            for row in existing:
                row.key = None
            assert id not in self.rows
            run_at = self.now + delay * 1000 if delay else None
            self.rows[id] = Row(id, priority, run_at, group, key, CEILING if ceiling is None else ceiling)

    @rule(count=st.integers(1, 4))
    def enqueue_plain(self, count: int) -> None:
        """Without it most histories have little to claim."""
        for id in self.queue.enqueue_many(["x"] * count):
            self.rows[id] = Row(id, 0, None, None, None)

    @rule()
    def claim_next(self) -> None:
        self.claim(None)

    @rule(group=groups)
    def claim(self, group: str | None) -> None:
        item = self.queue.claim(group=group)
        if self.paused:
            assert item is None
            return
        row = self.take(group)
        assert (item and item.id) == (row and row.id)
        if item is not None and row is not None:
            assert (item.attempt, item.retries) == (row.attempt, row.retries)
            self.held.append((item, row.attempt))

    def take(self, group: str | None) -> Row | None:
        """What a claim does."""
        self.settle_time()
        row = self.next_row(group)
        if row is not None:
            row.status, row.attempt, row.cancelled = "processing", row.attempt + 1, False
            row.lease_until = self.now + LEASE * 1000
        return row

    @precondition(lambda self: self.crashes < 2)
    @rule(group=groups)
    def crash(self, group: str | None) -> None:
        """Another process claims something and is killed with it in hand."""
        self.crashes += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            try:
                self.another().claim(group=group)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        if not self.paused and (row := self.take(group)):
            row.orphaned = True
        # One that has just looked for the dead would not look again at once.
        self.reopen()

    def finish(self, index: int, verb: Any) -> Row | None:
        """Ends a claim through `verb`; returns the row when the model says that it takes effect."""
        item, row, valid = self.holder(index)
        took_effect = verb(item)
        if valid and row is not None and row.cancelled:
            row.status = "cancelled"
            valid = False
        assert took_effect == valid
        return row if valid else None

    @precondition(lambda self: self.held)
    @rule(index=numbers)
    def mark_done(self, index: int) -> None:
        if row := self.finish(index, self.queue.mark_done):
            row.status = "done"

    @precondition(lambda self: self.held)
    @rule(index=numbers, retry_in=st.sampled_from([None, 0, 20]), give_up=st.booleans())
    def mark_failed(self, index: int, retry_in: int | None, give_up: bool) -> None:
        if row := self.finish(index, lambda item: self.queue.mark_failed(item, "no", retry_in, give_up)):
            row.retries += 1
            if retry_in is not None and not give_up and row.retries < row.ceiling:
                row.status, row.run_at = "pending", self.now + retry_in * 1000 if retry_in else None
            else:
                row.status, row.gave_up = "failed", give_up

    @precondition(lambda self: self.held)
    @rule(index=numbers, delay=st.sampled_from([0, 15]))
    def release(self, index: int, delay: int) -> None:
        if row := self.finish(index, lambda item: self.queue.release(item, delay)):
            row.status, row.run_at = "pending", self.now + delay * 1000 if delay else None

    @precondition(lambda self: self.held)
    @rule(index=numbers)
    def extend(self, index: int) -> None:
        item, row, valid = self.holder(index)
        assert self.queue.extend(item, LEASE) == valid
        if valid and row is not None:
            row.lease_until = self.now + LEASE * 1000

    @rule(seconds=st.sampled_from([1, 10, 30, 61, 86_400, -1, -30, -61, -86_400]))
    def advance(self, seconds: int) -> None:
        self.now += seconds * 1000
        _native.set_clock(self.now)

    @precondition(lambda self: any(row.status == "processing" for row in self.rows.values()))
    @rule()
    def outlive(self) -> None:
        """All leases run out."""
        self.now = max(row.lease_until for row in self.rows.values() if row.status == "processing")
        _native.set_clock(self.now)

    @precondition(lambda self: self.rows)
    @rule(index=numbers)
    def cancel(self, index: int) -> None:
        row = list(self.rows.values())[index % len(self.rows)]
        changed = self.queue.cancel(row.id)
        if row.status == "pending":
            assert changed
            row.status, row.run_at = "cancelled", None
        elif row.status == "processing":
            assert changed == (not row.cancelled)
            row.cancelled = True
        else:
            assert not changed

    @precondition(lambda self: self.rows)
    @rule(index=numbers, delay=st.sampled_from([0, 15]))
    def run_later(self, index: int, delay: int) -> None:
        row = list(self.rows.values())[index % len(self.rows)]
        waits = row.status == "pending"
        assert self.queue.run_later(row.id, delay) == waits
        if waits:
            row.run_at = self.now + delay * 1000 if delay else None

    @precondition(lambda self: self.rows)
    @rule(index=numbers)
    def retry(self, index: int) -> None:
        row = list(self.rows.values())[index % len(self.rows)]
        allowed = row.status in ("failed", "cancelled") and not self.key_in_use(row.key)
        assert self.queue.retry(row.id) == allowed
        if allowed:
            row.status, row.retries, row.run_at, row.cancelled, row.gave_up = "pending", 0, None, False, False

    @rule()
    def retry_failed(self) -> None:
        failed = [row for row in self.rows.values() if row.status == "failed" and not row.gave_up]
        below = [row for row in failed if row.retries < row.ceiling]
        newest = {row.key: row.id for row in below}
        back = [row for row in below if row.key is None or (newest[row.key] == row.id and not self.key_in_use(row.key))]
        assert self.queue.retry_failed() == len(back)
        for row in back:
            row.status, row.run_at = "pending", None

    @rule(delay=st.sampled_from([0, 20]))
    def retry_all(self, delay: int) -> None:
        failed = [row for row in self.rows.values() if row.status == "failed"]
        newest = {row.key: row.id for row in failed}
        back = [
            row for row in failed if row.key is None or (newest[row.key] == row.id and not self.key_in_use(row.key))
        ]
        assert self.queue.retry_all(delay=delay) == len(back)
        for row in back:
            row.status, row.retries, row.gave_up = "pending", 0, False
            row.run_at = self.now + delay * 1000 if delay else None

    @precondition(lambda self: self.rows)
    @rule(index=numbers)
    def delete(self, index: int) -> None:
        id = list(self.rows)[index % len(self.rows)]
        assert self.queue.delete(id)
        del self.rows[id]

    @rule()
    def pause_or_resume(self) -> None:
        assert self.queue.resume() if self.paused else self.queue.pause()
        self.paused = not self.paused

    @rule()
    def reopen(self) -> None:
        """Another object on the same file knows the same."""
        other = self.another()
        self.queue.close()
        self.queue = other

    def another(self) -> Queue:
        return Queue(self.path, durability="normal", lease=LEASE, max_retries=CEILING)

    @invariant()
    def file_and_model_agree(self) -> None:
        if not hasattr(self, "queue"):
            return
        Delivery.steps += 1
        found = {item.id: (item.status, item.retries, item.attempt) for item in self.queue.items(limit=1000)}
        assert found == {row.id: (row.status, row.retries, row.attempt) for row in self.rows.values()}
        counts = self.queue.counts()
        for status in ("pending", "processing", "done", "failed", "cancelled"):
            assert counts[status] == sum(row.status == status for row in self.rows.values())


SHORT = settings(
    max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)
LONG = settings(SHORT, max_examples=3000, stateful_step_count=70)


def test_random_histories_agree_with_the_model() -> None:
    run_state_machine_as_test(Delivery, settings=SHORT)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_many_random_histories_agree_with_the_model() -> None:
    before = Delivery.steps
    run_state_machine_as_test(Delivery, settings=LONG)
    assert Delivery.steps - before >= 100_000


BUGS = {
    "a fence that is ignored": """
        CREATE TRIGGER seeded AFTER UPDATE OF status ON ingest_queue
            WHEN NEW.status = 'processing' AND NEW.attempt > 1
        BEGIN UPDATE ingest_queue SET attempt = 1, claim_token = 1 WHERE id = NEW.id; END;
    """,
    "a group that is overtaken": "DROP TRIGGER ingest_queue_group_update;",
    "a retry count that is lost": """
        CREATE TRIGGER seeded AFTER UPDATE OF retries ON ingest_queue
            WHEN NEW.retries > 0
        BEGIN UPDATE ingest_queue SET retries = 0 WHERE id = NEW.id; END;
    """,
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_model_notices(bug: str) -> None:
    broken = type("Broken", (Delivery,), {"damage": BUGS[bug]})
    # The same histories every time: a bug that is noticed today is noticed tomorrow.
    thorough = settings(SHORT, max_examples=400, phases=(Phase.generate,), derandomize=True)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(broken, settings=thorough)
