//! What an engine is, beyond its transactions: who lives, who waits, and what is kept outside the tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{ForeignStatements, Health, Renewal, Tx, View};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::Now;
use crate::wake::Bell;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// The disk: what is acknowledged survives a power cut.
    Full,
    /// The operating system: survives the process, and a power cut rolls back the last commits.
    Normal,
}

/// How a call waits for other writers.
#[derive(Clone, Copy)]
pub struct Wait {
    /// For so long.
    pub limit: Duration,
    /// Asked between two slices of the wait: whether to give it up.
    pub interrupted: fn() -> bool,
    /// Told what people should know meanwhile.
    pub warn: fn(&str),
}

impl Wait {
    /// Without a caller that could interrupt it or be warned.
    pub fn up_to(limit: Duration) -> Self {
        Self { limit, interrupted: || false, warn: |_| {} }
    }
}

/// What shows other processes that the owner lives, until its last owner drops it or the process ends.
pub trait Liveness: Send + Sync {
    /// The number by which the others know it.
    fn number(&self) -> i64;

    /// Keeps it for some time although its owner is gone.
    fn keep_for(self: Arc<Self>, time: Duration);
}

/// Tells of commits by other connections.
pub trait ChangeWatch: Send {
    /// Whether there was one since this was asked last.
    fn has_changed(&mut self) -> Result<bool>;
}

/// One database as this process has it open. All queues in it share it.
pub trait Store: Send + Sync {
    /// Runs `work` in one write transaction and commits it; after an error nothing has changed. The clock is read once the
    /// transaction holds what it needs, never before.
    fn transact(
        &self,
        flush: Flush,
        clock: &Clock,
        wait: Wait,
        work: &mut (dyn FnMut(&dyn Tx) -> Result<()> + Send),
    ) -> Result<()>;

    /// Runs `look` beside the writers; everything committed before the call is seen. With `is_moment` all of its questions
    /// are answered as of one moment; without, each is.
    fn look(&self, now: Now, is_moment: bool, look: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()>;

    /// What the renewals name is held for as long as they say, if it was held still; return for each whether it was.
    fn renew(&self, clock: &Clock, wait: Wait, renewals: &[Renewal]) -> Result<Vec<bool>>;

    /// The statements for the caller's own connection.
    fn foreign(&self) -> &'static dyn ForeignStatements;

    /// What shows that this process lives; `None` where a dead process cannot be told from a silent one.
    fn liveness(&self) -> Option<Arc<dyn Liveness>>;

    /// Another one, which ends before the process does.
    fn new_liveness(&self) -> Option<Arc<dyn Liveness>>;

    /// Whether the process with this number lives, as far as can be told.
    fn is_alive(&self, number: i64) -> bool;

    /// Liveness that was kept for claims whose leases are over ends.
    fn tidy_liveness(&self);

    /// Other processes see whether this one's heartbeat waits for another writer.
    fn show_renewal_wait(&self, waits: bool);

    fn is_showing_renewal_wait(&self) -> bool;

    /// Whether the process with this number shows that its heartbeat waits.
    fn sees_renewal_wait(&self, number: i64) -> bool;

    /// Whether another connection of this process keeps the writers waiting.
    fn is_blocked_by_this_process(&self) -> bool;

    /// Fails if the database was removed or replaced, so that nothing waits for it in vain.
    fn check_is_there(&self) -> Result<()>;

    /// Rung after commits of this process.
    fn bell(&self) -> &Bell;

    /// A file whose events hint at commits of other processes, if there is one.
    fn event_file(&self) -> Option<PathBuf>;

    fn change_watch(self: Arc<Self>) -> Result<Box<dyn ChangeWatch>>;

    /// Whether it was opened by this process: a forked child uses nothing of its parent's.
    fn is_of_this_process(&self) -> bool;

    /// How the database and a queue in it are; a thorough look reads everything.
    fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health>;

    /// A copy of everything as it is at this moment is in a new file.
    fn backup(&self, target: &Path, wait: Wait) -> Result<()>;

    /// The space of removed rows is given back.
    fn compact(&self, wait: Wait) -> Result<()>;

    /// What has to be done now and then beside the work is done, as far as it waits for no one.
    fn checkpoint(&self) -> Result<()>;

    /// Called between two transactions of a long call, of which the last took `held`: others get their turn.
    fn let_others_write(&self, held: Duration);
}

impl dyn Store + '_ {
    /// Runs `work` in one write transaction and returns what it gave; see [`Store::transact`].
    pub fn write<T: Send>(
        &self,
        flush: Flush,
        clock: &Clock,
        wait: Wait,
        work: impl FnOnce(&dyn Tx) -> Result<T> + Send,
    ) -> Result<T> {
        let mut work = Some(work);
        let mut value = None;
        self.transact(flush, clock, wait, &mut |tx| {
            let work = work.take().ok_or_else(|| Error::Storage("work was asked for twice".into()))?;
            value = Some(work(tx)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Storage("a transaction gave no value".into()))
    }

    /// Asks one question; see [`Store::look`].
    pub fn read<T>(&self, now: Now, look: impl FnOnce(&dyn View) -> Result<T>) -> Result<T> {
        self.looked(now, false, look)
    }

    /// Asks several questions about one moment.
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
