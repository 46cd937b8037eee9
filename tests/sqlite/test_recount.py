"""Counts and the order of groups stay true whoever writes: random histories of verbs and plain SQL beside a recount."""

import contextlib
import random
import sqlite3

import pytest
from membox_queue import DuplicateItemError, NewItem, Queue, QueueError, Retry

STATUSES = ["pending", "processing", "done", "failed", "blocked", "cancelled"]
NAMES = ["ingest", "mail"]
GROUPS = ["a", "b", "c", None, None]


class History:
    """Random calls of verbs, and random statements of another program, on one file."""

    def __init__(self, path, clock, seed):
        self.dice = random.Random(seed)
        self.clock = clock
        self.limit = self.dice.choice([1, 1, 2, 3])
        policy = self.dice.choice([None, Retry(max=3, base=5)])
        options = {"durability": "normal", "lease": 30, "group_limit": self.limit, "retry": policy}
        self.queues = [Queue(path, name, **options) for name in NAMES]
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        # With this, and only then, REPLACE fires the triggers of DELETE.
        self.connection.execute(f"PRAGMA recursive_triggers = {self.dice.choice(['OFF', 'OFF', 'ON'])}")
        self.columns = [row[1] for row in self.rows("PRAGMA table_info(ingest_queue)") if row[1] != "id"]
        self.held = []
        self.acts = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]

    def do_trigger_of_the_application(self):
        """While there is one, our own statements run with triggers, too."""
        self.rows("DROP TRIGGER IF EXISTS app_audit")
        if self.dice.random() < 0.5:
            self.rows("CREATE TRIGGER app_audit AFTER UPDATE ON ingest_queue BEGIN SELECT 1; END")

    def do_keep_nothing(self):
        self.queue.configure(keep_for=self.some(0, None))

    def close(self):
        self.connection.close()
        for queue in self.queues:
            queue.close()

    def rows(self, statement, *values):
        return self.connection.execute(statement, values).fetchall()

    def sql(self, statement, *values):
        with contextlib.suppress(sqlite3.IntegrityError):
            self.rows(statement, *values)

    def some(self, *choices):
        return self.dice.choice(choices)

    @property
    def queue(self):
        return self.dice.choice(self.queues)

    @property
    def group(self):
        return self.dice.choice(GROUPS)

    @property
    def id(self):
        ids = [id for (id,) in self.rows("SELECT id FROM ingest_queue ORDER BY id")]
        return self.dice.choice(ids) if ids else 1

    @property
    def later(self):
        return self.some(None, None, self.clock.ms + 4000)

    def do_enqueue(self):
        self.queue.enqueue_many(
            NewItem("x", group=self.group, priority=self.some(-1, 0, 2), delay=self.some(None, None, 5))
            for _ in range(self.some(1, 1, 2, 6))
        )

    def do_enqueue_with_a_key(self):
        with contextlib.suppress(DuplicateItemError):
            self.queue.enqueue(
                "x", key=self.some("k", "l"), group=self.group, on_duplicate=self.some("raise", "replace")
            )

    def do_claim(self):
        queue = self.queue
        take = self.some(
            lambda: queue.claim_many(self.some(1, 1, 4)),
            lambda: queue.claim_many(1, group="a"),
            lambda: queue.claim_group(limit=self.some(None, 2)),
        )
        self.held += [(queue, item) for item in take()]

    def do_finish(self):
        for _ in range(min(len(self.held), 2)):
            queue, item = self.held.pop(self.dice.randrange(len(self.held)))
            match self.some("done", "failed", "released"):
                case "done":
                    queue.mark_done(item)
                case "failed":
                    queue.mark_failed(item, "no", retry_in=self.some(None, 0, 7), give_up=self.some(False, True))
                case "released":
                    queue.release(item, delay=self.some(0, 4))

    def do_bring_back(self):
        queue = self.queue
        with contextlib.suppress(QueueError):
            self.some(queue.retry_failed, lambda: queue.retry(self.id), lambda: queue.run_now(self.id))()

    def do_remove(self):
        queue = self.queue
        self.some(queue.cancel, queue.cancel, queue.delete)(self.id)
        if self.dice.random() < 0.05:
            queue.purge(self.dice.choice(STATUSES))

    def do_let_time_pass(self):
        self.clock.advance(self.some(1, 6, 40, -5))

    def do_insert(self):
        self.sql(
            "INSERT INTO ingest_queue (content, queue, group_key, run_at, status) VALUES ('x', ?, ?, ?, ?)",
            *(self.queue.name, self.group, self.later, self.some("pending", *STATUSES, "strange")),
        )

    def do_copy(self):
        # Everything is copied as it stands, what is ours alone too, into any group.
        values = ["?" if name == "group_key" else name for name in self.columns]
        names, values = ", ".join(self.columns), ", ".join(values)
        self.sql(f"INSERT OR IGNORE INTO ingest_queue ({names}) SELECT {values} FROM ingest_queue WHERE id % 5 = ?",
                 self.group, self.dice.randrange(5))  # fmt: skip

    def do_insert_what_may_be_there(self):
        conflict = self.some("OR REPLACE", "OR REPLACE", "OR IGNORE", "OR ABORT")
        self.sql(
            f"INSERT {conflict} INTO ingest_queue (id, content, queue, group_key, status, dedup_key)"
            " VALUES (?, 'x', ?, ?, ?, ?)",
            *(
                self.some(None, self.id),
                self.queue.name,
                self.group,
                self.some("pending", "done"),
                self.some(None, "k"),
            ),
        )

    def do_upsert(self):
        self.sql(
            "INSERT INTO ingest_queue (id, content, group_key) VALUES (?, 'x', ?)"
            " ON CONFLICT (id) DO UPDATE SET status = ?, group_key = excluded.group_key",
            *(self.id, self.group, self.dice.choice(STATUSES)),
        )

    def do_change_a_status(self):
        conflict = self.some("OR ABORT", "OR REPLACE")
        self.sql(
            f"UPDATE {conflict} ingest_queue SET status = ? WHERE id = ?", self.some(*STATUSES, "strange"), self.id
        )

    def do_give_everything_back(self):
        self.sql("UPDATE OR IGNORE ingest_queue SET status = 'pending' WHERE status = 'processing'")

    def do_change_a_place(self):
        conflict = self.some("OR ABORT", "OR IGNORE", "OR REPLACE")
        column, value = self.some(
            ("id", self.some(self.id, self.dice.randrange(1000))), ("queue", self.queue.name), ("dedup_key", "k"),
            ("group_key", self.group), ("run_at", self.later), ("attempt", self.some(0, 1, 5, -3)),
        )  # fmt: skip
        self.sql(f"UPDATE {conflict} ingest_queue SET {column} = ? WHERE id = ?", value, self.id)

    def do_delete(self):
        self.sql("DELETE FROM ingest_queue WHERE id = ?", self.id)
        if self.dice.random() < 0.1:
            self.sql("DELETE FROM ingest_queue WHERE group_key = ? AND status = 'processing'", self.group)

    def step(self):
        act = self.dice.choice(self.acts)
        act()
        for queue in self.queues:
            self.compare(queue, act.__name__)

    def compare(self, queue, act):
        of_queue = "FROM ingest_queue WHERE queue = ?"
        counts = dict.fromkeys(STATUSES, 0)
        counts.update(self.rows(f"SELECT status, count(*) {of_queue} AND status <> 'strange' GROUP BY 1", queue.name))
        assert queue.counts() == counts, act
        groups = {}
        in_groups = f"{of_queue} AND group_key IS NOT NULL AND status IN ('pending', 'processing')"
        for group, status, count in self.rows(
            f"SELECT group_key, status, count(*) {in_groups} GROUP BY 1, 2", queue.name
        ):
            groups.setdefault(group, {"pending": 0, "processing": 0})[status] = count
        assert queue.group_counts() == groups, act
        stats = queue.stats()
        assert (stats["counts"], stats["groups"]) == (counts, len(groups)), act
        for group in groups:
            waiting = self.rows(
                f"SELECT id, behind {of_queue} AND group_key = ? AND status = 'pending'"
                " AND (run_at IS NULL OR attempt > 0) ORDER BY id",
                *(queue.name, group),
            )
            free = max(0, self.limit - groups[group]["processing"])
            assert [behind == 0 for _, behind in waiting] == [place < free for place in range(len(waiting))], act
        assert not self.rows(f"SELECT id {of_queue} AND group_key IS NULL AND behind <> 0", queue.name), act


def play(path, clock, seed, steps):
    history = History(path, clock, seed)
    try:
        for _ in range(steps):
            history.step()
    finally:
        history.close()


@pytest.mark.parametrize("seed", range(6))
def test_counts_and_groups_are_what_a_recount_says(path, clock, seed):
    play(path, clock, seed, 150)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(100, 140))
def test_counts_and_groups_are_what_a_recount_says_in_long_histories(path, clock, seed):
    play(path, clock, seed, 300)
