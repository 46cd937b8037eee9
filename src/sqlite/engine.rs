//! The `Store` trait for SQLite.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Transaction;
use super::file::{Database, Lent};
use super::foreign::Foreign;
use super::locks::{self, SignOfLife};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::model::Now;
use crate::store::{
    Advance, ChangeWatch, Enqueue, Enqueued, Flush, ForeignStatements, Health, Liveness, Moved, Renewal, Store, Tx,
    View, Wait,
};
use crate::wake::Bell;

/// The longest time that the write lock is left free between two transactions of a long call.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Store for Database {
    fn transact(
        &self,
        flush: Flush,
        clock: &Clock,
        wait: Wait,
        work: &mut (dyn FnMut(&dyn Tx) -> Result<()> + Send),
    ) -> Result<()> {
        self.run_transaction(flush, clock, wait, &mut |tx: &Transaction| work(tx))
    }

    fn look(&self, now: Now, is_moment: bool, look: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        self.read(|connection| {
            // In memory, the only connection may already be in a transaction, which is one snapshot.
            let begins = is_moment && connection.is_autocommit();
            let _moment = begins.then(|| connection.unchecked_transaction()).transpose()?;
            look(&Transaction::new(connection, self, now))
        })
    }

    fn enqueue(&self, flush: Flush, clock: &Clock, wait: Wait, enqueue: &mut Enqueue) -> Result<Enqueued> {
        self.in_transaction(flush, clock, wait, &mut |tx| tx.enqueue_all(enqueue))
    }

    fn advance(&self, flush: Flush, clock: &Clock, wait: Wait, advance: &Advance) -> Result<Moved> {
        self.in_transaction(flush, clock, wait, &mut |tx| tx.advance(advance))
    }

    fn renew(&self, clock: &Clock, wait: Wait, renewals: &[Renewal]) -> Result<Vec<bool>> {
        self.renew_all(clock, wait, renewals)
    }

    fn foreign(&self) -> &'static dyn ForeignStatements {
        &Foreign
    }

    fn liveness(&self) -> Option<Arc<dyn Liveness>> {
        Some(self.sign_of_life()?)
    }

    fn new_liveness(&self) -> Option<Arc<dyn Liveness>> {
        Database::new_liveness(self)
    }

    fn is_alive(&self, number: i64) -> bool {
        Database::is_alive(self, number)
    }

    fn tidy_liveness(&self) {
        locks::tidy_signs();
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

    fn bell(&self) -> &Bell {
        Database::bell(self)
    }

    fn event_file(&self) -> Option<PathBuf> {
        self.log_path()
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

    fn backup(&self, target: &Path, wait: Wait) -> Result<()> {
        Database::backup(self, target, wait)
    }

    fn compact(&self, wait: Wait) -> Result<()> {
        Database::compact(self, wait)
    }

    fn checkpoint(&self) -> Result<()> {
        Database::checkpoint(self)
    }

    /// Other programs poll for the lock, and would rarely find it free in the instant between two transactions. So it
    /// is left free for half as long as it was held.
    fn let_others_write(&self, held: Duration) {
        if self.log_path().is_some() {
            std::thread::sleep((held / 2).min(LONGEST_PAUSE));
        }
    }
}

impl Database {
    /// Runs one move in a transaction.
    fn in_transaction<T: Send>(
        &self,
        flush: Flush,
        clock: &Clock,
        wait: Wait,
        run: &mut (dyn FnMut(&Transaction) -> Result<T> + Send),
    ) -> Result<T> {
        let mut value = None;
        self.run_transaction(flush, clock, wait, &mut |tx: &Transaction| {
            value = Some(run(tx)?);
            Ok(())
        })?;
        value.ok_or_else(|| Error::Storage("a transaction gave no value".into()))
    }
}

impl Liveness for SignOfLife {
    fn number(&self) -> i64 {
        self.number
    }

    fn keep_for(self: Arc<Self>, time: Duration) {
        locks::keep_sign(self, time);
    }
}

/// Reads `data_version` on a separate connection; it changes with every commit of another connection.
struct VersionWatch {
    version: Option<(Lent, i64)>,
    database: Weak<Database>,
}

impl ChangeWatch for VersionWatch {
    fn has_changed(&mut self) -> Result<bool> {
        let Some((lent, known)) = self.version.take() else {
            if let Some(database) = self.database.upgrade()
                && let Some(lent) = database.lend()?
            {
                let version = lent.data_version()?;
                self.version = Some((lent, version));
            }
            return Ok(true);
        };
        let version = lent.data_version()?;
        self.version = Some((lent, version));
        Ok(version != known)
    }
}

impl Drop for VersionWatch {
    fn drop(&mut self) {
        if let (Some((lent, _)), Some(database)) = (self.version.take(), self.database.upgrade()) {
            database.take_back(lent);
        }
    }
}
