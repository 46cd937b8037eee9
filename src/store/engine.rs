//! What an engine provides beyond its transactions: liveness, change detection, health, backup and maintenance.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Advance, Enqueue, Enqueued, ForeignStatements, Health, Moved, Renewal, Tx, View};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::Now;
use crate::wake::WakeSignal;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitSync {
    /// For the disk: an acknowledged commit survives a power cut.
    Full,
    /// For the operating system: a commit survives the process, but a power cut may roll back the latest commits.
    Normal,
}

/// How a call waits for other writers.
#[derive(Clone, Copy)]
pub struct LockWait {
    /// The longest wait.
    pub limit: Duration,
    /// Called between two slices of the wait; returns whether to abandon it.
    pub interrupted: fn() -> bool,
    /// Receives warnings for the user during the wait.
    pub warn: fn(&str),
}

impl LockWait {
    /// A wait without a caller that could interrupt it or receive warnings.
    pub fn up_to(limit: Duration) -> Self {
        Self { limit, interrupted: || false, warn: |_| {} }
    }
}

/// A sign to other processes that the owner is alive, until its last owner drops it or the process ends.
pub trait Liveness: Send + Sync {
    /// The number by which other processes know it.
    fn number(&self) -> i64;

    /// Keeps it for some time after its owner is gone.
    fn keep_for(self: Arc<Self>, time: Duration);
}

/// Detects commits by other connections.
pub trait ChangeWatch: Send {
    /// Returns whether there was one since the last call.
    fn has_changed(&mut self) -> Result<bool>;
}

/// One database as this process has it open. All its queues share it.
pub trait Store: Send + Sync {
    /// Runs `work` in one write transaction and commits it; after an error nothing has changed. The clock is read only
    /// after the transaction has its locks.
    fn transact(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        work: &mut (dyn FnMut(&dyn Tx) -> Result<()> + Send),
    ) -> Result<()>;

    /// Runs `look` in parallel with writers; it sees every commit made before the call. With `is_moment` all its
    /// queries read one snapshot; without, each reads its own.
    fn look(&self, now: Now, is_moment: bool, look: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()>;

    /// Enqueues all items or none, in one transaction. Locks nothing that an enqueue of other keys needs.
    fn enqueue(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        enqueue: &mut Enqueue,
    ) -> Result<Enqueued>;

    /// Records ends, brings in what is due, and claims, in one transaction; see [`Advance`]. Locks the items that end and
    /// those it claims, and a queue's rate if it has one.
    fn advance(&self, commit_sync: CommitSync, clock: &Clock, wait: LockWait, advance: &Advance) -> Result<Moved>;

    /// Renews each lease that is still held, for the duration its renewal names. Returns for each whether it was held.
    fn renew(&self, clock: &Clock, wait: LockWait, renewals: &[Renewal]) -> Result<Vec<bool>>;

    /// The statements for the caller's own connection.
    fn foreign(&self) -> &'static dyn ForeignStatements;

    /// The liveness of this process; `None` where a dead process cannot be told from a silent one.
    fn liveness(&self) -> Option<Arc<dyn Liveness>>;

    /// Another liveness, which may end before the process does.
    fn new_liveness(&self) -> Option<Arc<dyn Liveness>>;

    /// Returns whether the process with this number is alive, as far as can be determined.
    fn is_alive(&self, number: i64) -> bool;

    /// Ends liveness that was kept for claims whose leases are over.
    fn tidy_liveness(&self);

    /// One more or one fewer caller of this process waits for the end of an item. A done item is not removed as it ends
    /// while any process has such a caller.
    fn count_awaited_end(&self, is_more: bool);

    fn are_ends_awaited(&self) -> bool;

    /// Shows other processes whether this one's heartbeat waits for another writer.
    fn show_renewal_wait(&self, waits: bool);

    fn is_showing_renewal_wait(&self) -> bool;

    /// Returns whether the process with this number shows that its heartbeat waits.
    fn sees_renewal_wait(&self, number: i64) -> bool;

    /// Returns whether another connection of this process blocks the writers.
    fn is_blocked_by_this_process(&self) -> bool;

    /// Fails if the database was removed or replaced, so that no caller waits for it in vain.
    fn check_is_there(&self) -> Result<()>;

    /// Notified after each commit of this process.
    fn wake_signal(&self) -> &WakeSignal;

    /// A file whose change events hint at commits of other processes, if there is one.
    fn event_file(&self) -> Option<PathBuf>;

    fn change_watch(self: Arc<Self>) -> Result<Box<dyn ChangeWatch>>;

    /// Returns whether this process opened it: a forked child uses nothing of its parent's.
    fn is_of_this_process(&self) -> bool;

    /// The health of the database and of a queue in it; a thorough check reads everything.
    fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health>;

    /// Copies the database, as of one moment, to a new file.
    fn backup(&self, target: &Path, wait: LockWait) -> Result<()>;

    /// Returns the space of removed rows to the file system.
    fn compact(&self, wait: LockWait) -> Result<()>;

    /// Does periodic maintenance, as far as that needs no waiting.
    fn checkpoint(&self) -> Result<()>;

    /// Called between two transactions of a long call, the last of which took `held`. Lets other writers take a turn.
    fn let_others_write(&self, held: Duration);
}

impl dyn Store + '_ {
    /// Runs `work` in one write transaction and returns its result; see [`Store::transact`].
    pub fn write<T: Send>(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        work: impl FnOnce(&dyn Tx) -> Result<T> + Send,
    ) -> Result<T> {
        let mut work = Some(work);
        let mut value = None;
        self.transact(commit_sync, clock, wait, &mut |tx| {
            let work = work.take().ok_or_else(|| Error::Storage("work was asked for twice".into()))?;
            value = Some(work(tx)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Storage("a transaction gave no value".into()))
    }

    /// Runs one query; see [`Store::look`].
    pub fn read<T>(&self, now: Now, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        self.looked(now, false, look)
    }

    /// Runs several queries on one snapshot.
    pub fn view<T>(&self, now: Now, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        self.looked(now, true, look)
    }

    fn looked<T>(&self, now: Now, is_moment: bool, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        let mut look = Some(look);
        let mut value = None;
        self.look(now, is_moment, &mut |view| {
            let look = look.take().ok_or_else(|| Error::Storage("a look was asked for twice".into()))?;
            value = Some(look(view)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Storage("a look gave no value".into()))
    }
}
