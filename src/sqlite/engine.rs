//! The `Store` trait for SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Transaction;
use super::file::{BorrowedReader, Database};
use super::foreign::Foreign;
use super::locks::{self, LivenessLock};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::Now;
use crate::store::{
    Advance, ChangeWatch, CommitSync, Enqueue, Enqueued, ForeignStatements, Health, Liveness, LockWait, Moved, Renewal,
    Store, Tx, View,
};
use crate::wake::WakeSignal;

/// The longest time that the write lock is left free between two transactions of a long call.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Store for Database {
    fn transact(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        work: &mut (dyn FnMut(&dyn Tx) -> Result<()> + Send),
    ) -> Result<()> {
        self.run_transaction(commit_sync, clock, wait, &mut |tx: &Transaction| {
            tx.anything_may_be_due();
            work(tx)
        })
    }

    fn look(&self, now: Now, is_moment: bool, look: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        self.read(|connection| {
            // In memory, the only connection may already be in a transaction, which is one snapshot.
            let begins = is_moment && connection.is_autocommit();
            let _moment = begins.then(|| connection.unchecked_transaction()).transpose()?;
            look(&Transaction::new(connection, self, now))
        })
    }

    fn enqueue(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        enqueue: &mut Enqueue,
    ) -> Result<Enqueued> {
        self.in_transaction(commit_sync, clock, wait, &mut |tx| tx.enqueue_all(enqueue))
    }

    fn advance(&self, commit_sync: CommitSync, clock: &Clock, wait: LockWait, advance: &Advance) -> Result<Moved> {
        self.in_transaction(commit_sync, clock, wait, &mut |tx| tx.advance(advance))
    }

    fn renew(&self, clock: &Clock, wait: LockWait, renewals: &[Renewal]) -> Result<Vec<bool>> {
        self.renew_all(clock, wait, renewals)
    }

    fn foreign(&self) -> &'static dyn ForeignStatements {
        &Foreign
    }

    fn liveness(&self) -> Option<Arc<dyn Liveness>> {
        Some(self.liveness_lock()?)
    }

    fn new_liveness(&self) -> Option<Arc<dyn Liveness>> {
        Database::new_liveness(self)
    }

    fn is_alive(&self, number: i64) -> bool {
        Database::is_alive(self, number)
    }

    fn tidy_liveness(&self) {
        locks::tidy_liveness_locks();
    }

    fn count_awaited_end(&self, is_more: bool) {
        Database::count_awaited_end(self, is_more);
    }

    fn are_ends_awaited(&self) -> bool {
        Database::are_ends_awaited(self)
    }

    fn show_renewal_wait(&self, waits: bool) {
        self.show_wait_to_renew(waits);
    }

    fn is_showing_renewal_wait(&self) -> bool {
        self.waits_to_renew_here()
    }

    fn sees_renewal_wait(&self, number: i64) -> bool {
        self.waits_to_renew(number)
    }

    fn is_blocked_by_this_process(&self) -> bool {
        Database::is_blocked_by_this_process(self)
    }

    fn check_is_there(&self) -> Result<()> {
        Database::check_is_there(self)
    }

    fn wake_signal(&self) -> &WakeSignal {
        Database::wake_signal(self)
    }

    fn event_file(&self) -> Option<PathBuf> {
        self.wal_path()
    }

    fn change_watch(self: Arc<Self>) -> Result<Box<dyn ChangeWatch>> {
        Ok(Box::new(VersionWatch { version: None, database: Arc::downgrade(&self) }))
    }

    fn is_of_this_process(&self) -> bool {
        Database::is_of_this_process(self)
    }

    fn health(&self, queue: &str, now: Now, lease_ms: i64, thorough: bool) -> Result<Health> {
        Database::health(self, queue, now, lease_ms, thorough)
    }

    fn backup(&self, target: &Path, wait: LockWait) -> Result<()> {
        Database::backup(self, target, wait)
    }

    fn compact(&self, wait: LockWait) -> Result<()> {
        Database::compact(self, wait)
    }

    fn checkpoint(&self) -> Result<()> {
        Database::checkpoint(self)
    }

    /// Other programs poll for the lock, and would rarely find it free in the instant between two transactions. So it
    /// is left free for half as long as it was held.
    fn let_others_write(&self, held: Duration) {
        if self.wal_path().is_some() {
            std::thread::sleep((held / 2).min(LONGEST_PAUSE));
        }
    }
}

impl Database {
    /// Runs one move in a transaction.
    fn in_transaction<T: Send>(
        &self,
        commit_sync: CommitSync,
        clock: &Clock,
        wait: LockWait,
        run: &mut (dyn FnMut(&Transaction) -> Result<T> + Send),
    ) -> Result<T> {
        let mut value = None;
        self.run_transaction(commit_sync, clock, wait, &mut |tx: &Transaction| {
            value = Some(run(tx)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Storage("a transaction gave no value".into()))
    }
}

impl Liveness for LivenessLock {
    fn number(&self) -> i64 {
        self.number
    }

    fn keep_for(self: Arc<Self>, time: Duration) {
        locks::keep_liveness_lock(self, time);
    }
}

/// Reads `data_version` on a separate connection; it changes with every commit of another connection.
struct VersionWatch {
    version: Option<(BorrowedReader, i64)>,
    database: Weak<Database>,
}

impl ChangeWatch for VersionWatch {
    fn has_changed(&mut self) -> Result<bool> {
        let Some((reader, known)) = self.version.take() else {
            if let Some(database) = self.database.upgrade()
                && let Some(reader) = database.borrow_reader_if_file()?
            {
                let version = reader.data_version()?;
                self.version = Some((reader, version));
            }
            return Ok(true);
        };
        let version = reader.data_version()?;
        self.version = Some((reader, version));
        Ok(version != known)
    }
}

impl Drop for VersionWatch {
    fn drop(&mut self) {
        if let (Some((reader, _)), Some(database)) = (self.version.take(), self.database.upgrade()) {
            database.return_reader(reader);
        }
    }
}
