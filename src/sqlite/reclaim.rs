//! The statements that find claims that are over without an end, on SQLite.

use rusqlite::params;

use super::rows::read_claimed;
use super::{Transaction, statement};
use crate::error::Result;
use crate::store::{Claimed, ReclaimTx};

impl ReclaimTx for Transaction<'_> {
    fn expired(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("expired"), params![queue, self.now.ms(), lease_ms, limit as i64], read_claimed)
    }

    fn ahead(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("ahead"), params![queue, self.now.ms(), lease_ms, limit as i64], read_claimed)
    }

    fn claims_of(&self, queue: &str, holder: i64, limit: usize) -> Result<Vec<Claimed>> {
        self.all(statement!("holder_claims"), params![queue, holder, limit as i64], read_claimed)
    }

    fn in_progress(&self, queue: &str) -> Result<Vec<Claimed>> {
        self.all(statement!("in_process"), params![queue], read_claimed)
    }

    fn rest_of_batch(&self, queue: &str, batch: i64, after: i64) -> Result<Vec<Claimed>> {
        self.all(statement!("rest_of_batch"), params![queue, batch, after], read_claimed)
    }

    fn grant_lease(&self, queue: &str, lease_ms: i64, limit: usize) -> Result<()> {
        self.run(statement!("grant"), params![queue, self.now.plus(lease_ms), lease_ms, limit as i64])?;
        Ok(())
    }

    fn add_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_add"), params![queue, holder])?;
        Ok(())
    }

    fn remove_holder(&self, queue: &str, holder: i64) -> Result<()> {
        self.run(statement!("holder_remove"), params![queue, holder])?;
        Ok(())
    }
}
