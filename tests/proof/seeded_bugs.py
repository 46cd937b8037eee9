"""Seeded bugs: builds the queue with one bug at a time and shows which test catches it.

`python -m proof.seeded_bugs [NAME …]`, with tests/ on the path, prints a table and fails if a bug survives. The tree is
copied to a temporary directory; the build goes to target/seeded and is reused from bug to bug.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "target" / "seeded"
COPIED = ["Cargo.toml", "Cargo.lock", "build.rs", "pyproject.toml", "README.md", ".cargo", "src", "benches", "python"]
COPIED += ["tests", "examples"]
NATIVE = Path("python", "membox_queue", "_native.abi3.so")
QUICK = ["--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"]


@dataclass(frozen=True)
class Bug:
    """One wrong line, and the tests that are expected to notice."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


BUGS = [
    Bug(
        "a stage keeps its steps",
        "src/store/end_steps.rs",
        "                EndStep::ForgetSteps\n            }",
        "                EndStep::ClearNeeds\n            }",
        ("tests/sqlite/test_next.py",),
    ),
    Bug(
        "a stage without a fence",
        "src/sqlite/sql/history_moved.sql",
        "AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0",
        "AND (?3 IS ?3) AND (?4 IS ?4) AND cancelled = 0",
        ("tests/contract/test_next.py",),
    ),
    Bug(
        "home forgotten",
        "src/sqlite/sql/move_on.sql",
        "home = coalesce(home, CASE WHEN queue <> ?5 THEN queue END)",
        "home = home",
        ("tests/contract/test_next.py",),
    ),
    Bug(
        "the allowance of the stage before",
        "src/sqlite/sql/move_on.sql",
        "       retries = 0, gave_up = 0,",
        "       gave_up = 0,",
        ("tests/contract/test_next.py",),
    ),
    Bug(
        "children of a claim that was lost",
        "src/sqlite/finish.rs",
        "        if settled.is_completed() {\n            for child in",
        "        if settled.is_completed() || true {\n            for child in",
        ("tests/contract/test_item_enqueue.py",),
    ),
    Bug(
        "a step without a fence",
        "src/sqlite/sql/step_add.sql",
        "AND attempt IS ?3 AND claim_token IS ?4",
        "AND (?3 IS ?3) AND (?4 IS ?4)",
        ("tests/contract/test_step.py",),
    ),
    Bug(
        "a swallowed suspension is done",
        "src/queue/advance.rs",
        "held.went_on().filter(|_| ending.is_completed())",
        "held.went_on().filter(|_| false)",
        ("tests/contract/test_sleep.py", "tests/contract/test_gather.py"),
    ),
    Bug(
        "a sleep that is not recorded",
        "src/sqlite/finish.rs",
        "            self.add_step(queue, receipt, name, *kind, &result)?;",
        "            let _ = (queue, receipt, name, kind, &result);",
        ("tests/contract/test_sleep.py", "tests/contract/test_gather.py"),
    ),
    Bug(
        "a drain leaves what is blocked by work",
        "src/store/advance.rs",
        "if self.is_blocked_by_work(served.name)? {",
        "if false && self.is_blocked_by_work(served.name)? {",
        ("tests/contract/test_gather.py",),
    ),
    Bug(
        "fence off",
        "src/sqlite/sql/finish.sql",
        "AND attempt IS ?3 AND claim_token IS ?4 AND cancelled = 0",
        "AND (?3 IS ?3) AND (?4 IS ?4) AND cancelled = 0",
        ("tests/contract/test_late_worker.py", "tests/test_model.py"),
    ),
    Bug(
        "fence of renewals off",
        "src/sqlite/sql/extend.sql",
        "AND attempt = ?3 AND claim_token = ?4",
        "AND ?3 = ?3 AND ?4 = ?4",
        ("tests/contract/test_late_worker.py", "tests/test_model.py"),
    ),
    Bug(
        "fence is an attempt that resets",
        "src/sqlite/sql/retry.sql",
        "retries = 0, gave_up = 0,",
        "retries = 0, attempt = 0, gave_up = 0,",
        ("tests/contract/test_retry.py", "tests/test_model.py"),
    ),
    Bug(
        "NORMAL instead of FULL",
        "src/queue/run.rs",
        "Durability::Full if verb.is_acknowledged() => CommitSync::Full,",
        "Durability::Full if verb.is_acknowledged() => CommitSync::Normal,",
        ("tests/proof/test_transactions.py",),
    ),
    Bug(
        "deferred BEGIN",
        "src/sqlite/file/writer.rs",
        '|| run(connection, "BEGIN IMMEDIATE")',
        '|| run(connection, "BEGIN")',
        ("tests/test_processes.py", "tests/proof/test_transactions.py"),
    ),
    Bug(
        "OFD locks off",
        "src/sqlite/locks/calls.rs",
        "let command = if !has_ofd || LOCKS.is_off() {",
        "let command = if has_ofd || LOCKS.is_off() {",
        ("tests/sqlite/same_process/test_two_copies.py",),
    ),
    Bug(
        "shared memory inherited by children",
        "src/sqlite/locks/calls.rs",
        "unsafe { libc::madvise(mapping, length, libc::MADV_DONTFORK) }",
        "unsafe { libc::madvise(mapping, length, libc::MADV_NORMAL) }",
        ("tests/sqlite/same_process/test_forks.py",),
    ),
    Bug(
        "attempts counted late",
        "src/rules/outcome.rs",
        "let retries = left.retries.saturating_add(1);\n            let error = vanished(",
        "let retries = left.retries;\n            let error = vanished(",
        ("tests/test_deaths.py", "tests/test_model.py"),
    ),
    Bug(
        "now read before the wait for the lock",
        "src/sqlite/file/writer.rs",
        "        let outcome = match self.begin(commit_sync, clock, wait, work) {\n",
        "        let early = Clock::system();\n"
        "        early.set(Some(clock.now().ms()));\n"
        "        let clock = &early;\n"
        "        let outcome = match self.begin(commit_sync, clock, wait, work) {\n",
        ("tests/proof/test_transactions.py",),
    ),
    Bug(
        "checksum not checked",
        "src/sqlite/rows.rs",
        "ValueRef::Integer(sum) => stored_sum(row)? == Some(sum),",
        "ValueRef::Integer(_) => stored_sum(row).is_ok(),",
        ("tests/sqlite/test_checksums.py", "tests/proof/test_damage.py"),
    ),
    Bug(
        "checksum kept when somebody changes content",
        "src/sqlite/migrations/checksums.sql",
        "UPDATE ingest_queue SET checksum = NULL WHERE id = NEW.id;",
        "SELECT 1;",
        ("tests/sqlite/test_checksums.py",),
    ),
    Bug(
        "index and table may disagree",
        "src/sqlite/advance.rs",
        'return Err(self.without_effect(&format!("the claim of item {id}")));',
        "return Ok(items);",
        ("tests/proof/test_damage.py",),
    ),
    Bug(
        "group trigger off",
        "src/sqlite/migrations/guards.sql",
        "AFTER UPDATE OF status, run_at, attempt, group_key, queue, id ON ingest_queue",
        "AFTER UPDATE OF group_key, queue ON ingest_queue",
        ("tests/contract/test_groups.py", "tests/test_model.py"),
    ),
    Bug(
        "frames of the log dropped",
        "src/sqlite/file/wal.rs",
        "return if write_all(fd, frames, start) { length as isize } else { -1 };",
        "return if start > 0 || write_all(fd, frames, start) { length as isize } else { -1 };",
        ("tests/contract/test_open.py",),
    ),
    Bug(
        "commits into a removed log acknowledged",
        "src/sqlite/locks/sharing.rs",
        "if current == Some(database) && ours.all(",
        "if true || ours.all(",
        ("tests/sqlite/test_hardships.py", "tests/sqlite/test_files.py"),
    ),
    Bug(
        "the dead not noticed",
        "src/sqlite/locks/liveness.rs",
        "conflicting_lock(file.lock_fd(), byte, 1).map_or(true, |lock| lock.is_some())",
        "conflicting_lock(file.lock_fd(), byte, 1).map_or(true, |lock| lock.is_some() || true)",
        ("tests/test_deaths.py",),
    ),
    Bug(
        "a clock that goes back believed",
        "src/sqlite/sql/ahead.sql",
        "lease_until > ?2 + coalesce(lease_ms, ?3)",
        "lease_until > ?2 + coalesce(lease_ms, ?3) + 99999999999",
        ("tests/contract/test_claim.py", "tests/test_model.py"),
    ),
    Bug(
        "expired leases not reclaimed",
        "src/sqlite/sql/scout.sql",
        "(SELECT lease_until FROM ingest_queue",
        "(SELECT lease_until + 99999999999 FROM ingest_queue",
        ("tests/test_model.py", "tests/contract/test_claim.py"),
    ),
    Bug(
        "heartbeat renews nothing",
        "src/queue/claim.rs",
        "Renewal { what, lease_ms: lease_ms + lease_ms / GRACE }",
        "Renewal { what, lease_ms: 0 * lease_ms / GRACE }",
        ("tests/contract/test_with_item.py", "tests/test_processes.py"),
    ),
    Bug(
        "two items of one key",
        "src/sqlite/sql/find_key.sql",
        "status IN ('pending', 'processing', 'blocked') AND cancelled = 0),",
        "status IN ('pending', 'processing', 'blocked') AND cancelled = 2),",
        ("tests/contract/test_keys.py", "tests/test_model.py"),
    ),
    Bug(
        "the worker lease taken from a live worker",
        "src/rules/lease.rs",
        "(age < ttl_ms && lead <= ttl_ms &&",
        "(age < ttl_ms && lead < 0 &&",
        ("tests/contract/test_worker_lease.py",),
    ),
    Bug(
        "priority turned round",
        "src/sqlite/migrations/indexes.sql",
        "CREATE INDEX ingest_queue_ready ON ingest_queue (queue, priority DESC, id)",
        "CREATE INDEX ingest_queue_ready ON ingest_queue (queue, priority, id)",
        ("tests/sqlite/test_plans.py", "tests/test_model.py"),
    ),
    Bug(
        "done without the caller's commit",
        "src/rules/outcome.rs",
        "Ending::Done { .. } => Ending::Failed { error: not_committed(said), retry_in: None, give_up: false },",
        "Ending::Done { .. } if not_committed(said).is_empty() => Ending::released_now(),",
        ("tests/contract/test_promised.py",),
    ),
    Bug(
        "a committed end counted as lost",
        "src/queue/worker_loop/step.rs",
        "if answered == Settled::Lost",
        "if answered == Settled::Done",
        ("tests/contract/test_promised.py",),
    ),
    Bug(
        "a receipt not presented before the block",
        "src/queue/enlist/block.rs",
        "Presenting::Written if rows.first().is_some_and(|row| integer(row, 1) == 1) => {",
        "Presenting::Written if !rows.is_empty() => {",
        ("tests/contract/test_item_transaction.py",),
    ),
    Bug(
        "a refused verb left in the caller's transaction",
        "src/queue/enlist/mod.rs",
        "vec![foreign.undo(), foreign.release()])",
        "vec![foreign.release()])",
        ("tests/contract/test_own_transaction.py",),
    ),
    Bug(
        "what a person cancelled is revived",
        "src/sqlite/migrations/workflows.sql",
        "     WHERE +status = 'cancelled' AND because IS NOT NULL\n",
        "     WHERE +status = 'cancelled'\n",
        ("tests/contract/test_after.py",),
    ),
    Bug(
        "a broken dependency counts as met",
        "src/sqlite/migrations/workflows.sql",
        "    UPDATE membox_queue_after SET state = 2\n",
        "    UPDATE membox_queue_after SET state = 1\n",
        ("tests/contract/test_after.py", "tests/proof/test_flow_storm.py"),
    ),
    Bug(
        "an end does not free those that wait",
        "src/sqlite/advance.rs",
        "if !ended.is_empty() {",
        "if ended.len() > 1_000_000 {",
        ("tests/contract/test_after.py",),
    ),
    Bug(
        "what was known of due times outlives a change",
        "src/sqlite/due.rs",
        "writer.next_due.forget();",
        "",
        ("tests/contract/test_next_due.py",),
    ),
    Bug(
        "new due times are not reported",
        "src/sqlite/due.rs",
        "*known = at.min(*known);",
        "",
        ("tests/contract/test_next_due.py",),
    ),
    Bug(
        "claims do not look at what plain SQL has ended",
        "src/sqlite/sql/scout.sql",
        "EXISTS (SELECT 1 FROM membox_queue_awaited WHERE item >= -9223372036854775808)",
        "0",
        ("tests/sqlite/test_flow.py",),
    ),
    Bug(
        "needed items are removed",
        "src/queue/retention.rs",
        "        spared.extend(tx.needed(ids)?);\n",
        "",
        ("tests/contract/test_needed.py",),
    ),
    Bug(
        "the end of an expired item counts",
        "src/sqlite/sql/finish.sql",
        " AND (expires_at IS NULL OR expires_at > ?15)",
        " AND ?15 > 0",
        ("tests/contract/test_expires.py",),
    ),
]


def copy(to: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "target"))
        else:
            shutil.copy2(source, to / name)


def seed(tree: Path, bug: Bug) -> None:
    file = tree / bug.file
    text = file.read_text(encoding="utf-8")
    assert text.count(bug.right) == 1, f"{bug.name}: {bug.file} has {text.count(bug.right)} places for it"
    file.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")


def build(tree: Path) -> None:
    environment = os.environ | {"CARGO_TARGET_DIR": str(TARGET), "PYO3_BUILD_EXTENSION_MODULE": "1"}
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--lib", "--features", "python", *QUICK]
    subprocess.run(command, cwd=tree, env=environment | {"RUSTFLAGS": "-Awarnings"}, check=True)
    shutil.copy2(TARGET / "release" / "libmembox_queue.so", tree / NATIVE)


def catching(tree: Path, bug: Bug) -> str | None:
    """The test that failed first, or none."""
    environment = os.environ | {"PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    for tests in bug.tests:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", tests]
        ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        failed = re.findall(r"^(?:FAILED|ERROR) \S*?(\w+\.py::\S+)", ended.stdout, re.MULTILINE)
        if failed:
            return failed[0]
        if ended.returncode != 0:
            return f"{tests} ended with {ended.returncode}"
    return None


def show(bug: Bug) -> bool:
    """Whether the bug was caught."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        copy(tree)
        seed(tree, bug)
        build(tree)
        caught = catching(tree, bug)
    test = f"`{caught}`" if caught else "**nothing**"
    print(f"| {bug.name} | `{bug.file}` | {test} | {time.monotonic() - started:.0f} s |", flush=True)
    return caught is not None


def main(names: list[str]) -> int:
    chosen = [bug for bug in BUGS if not names or bug.name in names]
    print("| bug | where | caught by | took |\n|---|---|---|---|", flush=True)
    survivors = [bug.name for bug in chosen if not show(bug)]
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} caught; survivors: {survivors or 'none'}")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
