//! The wording of busy errors and warnings: which process or connection has the write lock, and what to do.

use std::time::{Duration, Instant};

use super::super::locks::{self, BlockingLock, LockHolder, LockKind};
use super::{Database, Location};
use crate::error::Error;
use crate::store::LockWait;

/// A call that has waited this long for another connection of its own process warns: its own caller may hold the lock.
const WARN_AFTER: Duration = Duration::from_secs(1);

pub(super) fn busy(location: &Location, limit: Duration) -> Error {
    Error::Busy(format!("waited {limit:?} for the write lock, and nothing was changed: {}", why_busy(location)))
}

/// Explains what holds the lock, as far as the system tells.
fn why_busy(location: &Location) -> String {
    let lock = match location {
        Location::File(path) => locks::blocking_lock(path),
        Location::Memory(_) => None,
    };
    match lock {
        None | Some(BlockingLock { holder: LockHolder::Unknown, kind: LockKind::Writes }) => {
            "another connection or thread has an open transaction; if it is yours, commit it or roll it back before \
             calling the queue"
                .to_owned()
        }
        Some(BlockingLock { holder, kind }) => {
            let is_here = holder == LockHolder::ThisProcess;
            let who = match holder {
                LockHolder::ThisProcess => {
                    "another connection of this very process (your own sqlite3, SQLAlchemy, …)".into()
                }
                LockHolder::Process(pid) => format!("process {pid}"),
                LockHolder::Unknown => "another connection".into(),
            };
            let what = match kind {
                LockKind::Writes if is_here => {
                    "has an open write transaction; commit it or roll it back before calling the queue, which would \
                     otherwise wait for you"
                }
                LockKind::Writes => "has an open write transaction",
                LockKind::Reads => {
                    "reads the file, which is not in WAL mode yet and can be switched to it only while no other \
                     connection reads; finish its cursor or transaction, and open the queue again"
                }
                LockKind::Excludes => {
                    "keeps the file for itself alone (PRAGMA locking_mode=EXCLUSIVE, or an exclusive transaction); close \
                     it, or let it use the normal locking mode"
                }
            };
            format!("{who} {what}")
        }
    }
}

impl Database {
    /// Warns once if the call has waited long for another connection of its own process, which may be its own caller's.
    pub(super) fn warn_of_own_transaction(&self, wait: LockWait, started: Instant, has_warned: &mut bool) {
        if !*has_warned && started.elapsed() >= WARN_AFTER && self.is_blocked_by_this_process() {
            *has_warned = true;
            let why = why_busy(&self.location);
            let text = format!("has waited {WARN_AFTER:?} for the write lock, and goes on waiting: {why}");
            (wait.warn)(&self.about(Error::Busy(text)).to_string());
        }
    }

    /// Returns whether a connection of this process that is not ours has an open write transaction.
    pub fn is_blocked_by_this_process(&self) -> bool {
        let Location::File(path) = &self.location else { return false };
        let own = BlockingLock { holder: LockHolder::ThisProcess, kind: LockKind::Writes };
        locks::blocking_lock(path) == Some(own)
    }
}
