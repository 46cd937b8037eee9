//! Renewals on SQLite: one short transaction for everything that is due.

use super::Database;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::store::{CommitSync, LockWait, Renewal, Renews, Store, Tx};

impl Database {
    pub(super) fn renew_all(&self, clock: &Clock, wait: LockWait, renewals: &[Renewal]) -> Result<Vec<bool>> {
        (self as &dyn Store)
            .write(CommitSync::Normal, clock, wait, |tx| renewals.iter().map(|renewal| renew(tx, renewal)).collect())
    }
}

/// Renews one lease. Returns whether it was still held.
fn renew(tx: &dyn Tx, renewal: &Renewal) -> Result<bool> {
    match &renewal.what {
        Renews::Claim { queue, receipt, progress } => {
            let is_held = tx.extend(queue, *receipt, renewal.lease_ms)?;
            if let (true, Some((fraction, note))) = (is_held, progress) {
                // The lease matters more: if the transaction survives the error, only the progress is lost.
                match tx.set_progress(queue, *receipt, *fraction, note.as_deref()) {
                    Err(error) if matches!(error, Error::Io(_)) || !tx.is_open() => return Err(error),
                    _ => {}
                }
            }
            Ok(is_held)
        }
        Renews::Lease { key, record } => {
            let is_ours = tx.worker_lease(key)?.is_some_and(|stored| record.owns(&stored));
            if is_ours {
                tx.set_worker_lease(key, &record.beaten_at(tx.now()).render())?;
            }
            Ok(is_ours)
        }
    }
}
