//! The statements that find claims that are over without an end, on SQLite.

use rusqlite::params;

use super::rows::read_claimed;
use super::{Transaction, statement};
use crate::error::Result;
use crate::store::{Claimed, ReclaimTx};

impl Transaction<'_> {
    /// Claims whose lease has expired; a bounded number.
    pub(super) fn expired(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("expired"), params![queue, self.now.ms(), lease_ms, limit as i64], read_claimed)
    }

    /// Claims that would last longer than their lease, because the clock was set back.
    pub(super) fn ahead(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("ahead"), params![queue, self.now.ms(), lease_ms, limit as i64], read_claimed)
    }

    /// Claims of one process; a bounded number.
    pub(super) fn claims_of(&self, queue: &str, holder: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("holder_claims"), params![queue, holder, limit as i64], read_claimed)
    }

    /// The claims of a batch with larger ids than `after`.
    pub(super) fn rest_of_batch(&self, queue: &str, batch: i64, after: i64) -> Result<Vec<Claimed>> {
        self.all(statement!("rest_of_batch"), params![queue, batch, after], read_claimed)
    }

    /// Gives claims of other programs that have neither a lease nor a start time one lease from now.
    pub(super) fn grant_lease(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<()> {
        self.run(statement!("grant"), params![queue, self.now.plus(lease_ms), lease_ms, limit as i64])?;
        Ok(())
    }

    /// Removes the record that a process may claim from the queue.
    pub(super) fn remove_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_remove"), params![queue, holder])?;
        Ok(())
    }
}

impl ReclaimTx for Transaction<'_> {
    fn in_progress(&self, queue: &str) -> Result<Vec<Claimed>> {
        self.all(statement!("in_process"), params![queue], read_claimed)
    }

    fn add_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_add"), params![queue, holder])?;
        Ok(())
    }
}
