//! The statements of a claim on SQLite.

use rusqlite::{OptionalExtension, params};

use super::rows::read_delivered;
use super::{Transaction, padding, statement};
use crate::error::Result;
use crate::model::{Item, Receipt};
use crate::store::{ClaimTx, Grant};

impl ClaimTx for Transaction<'_> {
    fn next(&self, queue: &str) -> Result<Option<i64>> {
        self.one(statement!("next"), params![queue])
    }

    fn next_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_in_group"), params![queue, group])
    }

    fn next_free_in_group(&self, queue: &str, group: &str) -> Result<Option<i64>> {
        self.one(statement!("next_free_in_group"), params![queue, group])
    }

    fn next_group(&self, queue: &str) -> Result<Option<i64>> {
        self.one(statement!("next_group"), params![queue])
    }

    fn next_beside(&self, queue: &str, id: i64) -> Result<Option<i64>> {
        self.one(statement!("next_beside"), params![queue, id])
    }

    fn next_batch(&self, queue: &str) -> Result<Option<(i64, bool)>> {
        let mut statement = self.connection.prepare_cached(statement!("next_batch"))?;
        let first = statement.query_row(params![queue], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(first.optional()?)
    }

    fn next_of_batch(&self, queue: &str, head: i64) -> Result<Option<i64>> {
        self.one(statement!("next_of_batch"), params![queue, head])
    }

    fn claim(&self, id: i64, grant: &Grant) -> Result<Option<Item>> {
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
        Ok(Some(statement.query_row(params![id], read_delivered)?))
    }

    fn bring_in_due(&self, queue: &str, limit: usize) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(statement!("bring_in_due"))?;
        let padding_bytes = padding::pending(None);
        Ok(statement.execute(params![queue, self.now.ms(), limit as i64, padding_bytes.0, padding_bytes.1])?)
    }

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
