//! The statements of a claim on SQLite. `advance.rs` puts them together.

use rusqlite::{OptionalExtension, params};

use super::rows::read_delivered;
use super::{Transaction, padding, statement};
use crate::error::Result;
use crate::model::{Item, Receipt, Status};
use crate::store::ClaimTx;

/// What a claim writes to a row.
pub struct Grant<'a> {
    pub token: i64,
    pub lease_ms: i64,
    pub worker: &'a str,
    pub batch: Option<i64>,
    pub holder: Option<i64>,
}

impl Transaction<'_> {
    /// The first claimable item of the queue.
    pub(super) fn next(&self, queue: &str) -> Result<Option<i64>> {
        self.one(statement!("next"), params![queue])
    }

    /// The first claimable item of a group.
    pub(super) fn next_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_in_group"), params![queue, group])
    }

    /// The first claimable item of a group that has nothing in progress.
    pub(super) fn next_free_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_free_in_group"), params![queue, group])
    }

    /// The claimable item with the smallest id in the group of item `id`.
    pub(super) fn next_beside(&self, queue: &str, id: i64) -> Result<Option<i64>> {
        self.one(statement!("next_beside"), params![queue, id])
    }

    /// The first item that can start a batch, and whether it has a group.
    pub(super) fn next_batch(&self, queue: &str) -> Result<Option<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(statement!("next_batch"))?;
        let first = statement.query_row(params![queue], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(first.optional()?)
    }

    /// The next pending item of the group of `head`.
    pub(super) fn next_of_batch(&self, queue: &str, head: i64) -> Result<Option<i64>> {
        self.one(statement!("next_of_batch"), params![queue, head])
    }

    /// Claims the item. Returns `None` if it could not be claimed.
    pub(super) fn claim(&self, id: i64, grant: &Grant) -> Result<Option<Item>> {
        let until = self.now.plus(grant.lease_ms);
        let mut statement = self.connection.prepare_cached(statement!("claim"))?;
        let padding_bytes = padding::processing(grant.lease_ms, grant.worker, grant.holder);
        let changed = statement.execute(params![
            id,
            grant.token,
            until,
            grant.lease_ms,
            grant.worker,
            self.now_text(),
            grant.batch,
            padding_bytes.0,
            padding_bytes.1,
            grant.holder,
        ])?;
        if changed == 0 {
            return Ok(None);
        }
        let mut statement = self.connection.prepare_cached(statement!("item"))?;
        let item = statement.query_row(params![id], read_delivered)?;
        self.will_be_due(&item.queue, until);
        self.changed(&item.queue, id, Some(Status::Pending), Status::Processing, item.group.is_some())?;
        Ok(Some(item))
    }

    /// Makes up to `limit` delayed items that are due claimable. Returns how many.
    pub(super) fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize> {
        let groups = self.groups_due(queue, limit)?;
        let padding_bytes = padding::pending(None);
        let values = params![queue, self.now.ms(), limit as i64, padding_bytes.0, padding_bytes.1];
        let due = self.run(statement!("bring_in_due"), values)?;
        for group in groups {
            self.run(statement!("group_moved"), params![queue, group])?;
        }
        Ok(due)
    }

    pub(super) fn priority(&self, id: i64) -> Result<i64> {
        Ok(self.one(statement!("priority"), params![id])?.unwrap_or(0))
    }
}

impl ClaimTx for Transaction<'_> {
    fn extend(&self, queue: &str, receipt: Receipt, lease_ms: i64) -> Result<bool> {
        let until = self.now.plus(lease_ms);
        let changed = self.connection.prepare_cached(statement!("extend"))?.execute(params![
            receipt.id,
            queue,
            receipt.attempt,
            receipt.token,
            until,
            lease_ms
        ])?;
        Ok(changed == 1)
    }

    fn set_progress(&self, queue: &str, receipt: Receipt, fraction: f64, note: Option<&str>) -> Result<bool> {
        let values = params![receipt.id, queue, receipt.attempt, receipt.token, fraction, note];
        Ok(self.run(statement!("progress_set"), values)? == 1)
    }
}
