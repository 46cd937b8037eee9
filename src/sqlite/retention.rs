//! The statements that remove finished items, on SQLite.

use rusqlite::params;
use rusqlite::types::Value as SqlValue;

use super::{Transaction, statement};
use crate::error::Result;
use crate::model::Status;
use crate::store::{Ended, ReferencedItem, RetentionTx};

/// The free pages that a file keeps: one in `KEPT_FREE_PART` of all its pages, and at least `KEPT_FREE_PAGES`.
const KEPT_FREE_PART: i64 = 5;
const KEPT_FREE_PAGES: i64 = 256;

impl RetentionTx for Transaction<'_> {
    fn purge(&self, queue: &str, status: Status, limit: i64) -> Result<usize> {
        self.change_items(statement!("purge"), params![queue, status.as_str(), limit])
    }

    fn ids_between(&self, queue: &str, status: Status, after: i64, until: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(statement!("ids_between"))?;
        let rows = statement.query_map(params![queue, status.as_str(), after, until], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn id_ahead(&self, id: i64, rows: i64) -> Result<Option<i64>> {
        Ok(self.one::<Option<i64>>(statement!("id_ahead"), params![id, rows])?.flatten())
    }

    fn kept(&self, queue: &str, ids: &[i64]) -> Result<Vec<ReferencedItem>> {
        let mut kept = Vec::new();
        for reference in self.database.references().of(self.connection)?.iter() {
            let found = reference.among(self.connection, queue, ids)?;
            kept.extend(found.into_iter().map(|id| ReferencedItem { id, table: reference.table.clone() }));
        }
        Ok(kept)
    }

    fn has_references(&self) -> Result<bool> {
        Ok(!self.database.references().of(self.connection)?.is_empty())
    }

    fn ended(&self, queue: &str, status: Status, before: Option<&str>, after: i64, limit: i64) -> Result<Vec<Ended>> {
        // SQLite orders text and numbers before a blob, so an empty blob means no time limit.
        let before = before.map_or(SqlValue::Blob(Vec::new()), |text| SqlValue::Text(text.into()));
        let mut statement = self.connection.prepare_cached(statement!("ended"))?;
        let rows = statement
            .query_map(params![queue, status.as_str(), before, after, self.now.ms(), limit], |row| {
                Ok(Ended { id: row.get(0)?, is_reserved: row.get(1)? })
            })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn timeless(&self, queue: &str, after: i64, limit: i64) -> Result<Vec<Ended>> {
        let mut statement = self.connection.prepare_cached(statement!("timeless"))?;
        let rows = statement.query_map(params![queue, after, self.now.ms(), limit], |row| {
            Ok(Ended { id: row.get(0)?, is_reserved: row.get(1)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn return_space(&self, most: i64) -> Result<bool> {
        let ask = |pragma: &str| -> Result<i64> {
            Ok(self.connection.prepare_cached(pragma)?.query_row([], |row| row.get(0))?)
        };
        if !self.database.shape().returns_space {
            return Ok(false);
        }
        let (free, pages) = (ask("PRAGMA freelist_count")?, ask("PRAGMA page_count")?);
        let spare = free - (pages / KEPT_FREE_PART).max(KEPT_FREE_PAGES);
        if spare > 0 {
            // Each step of the statement frees one page.
            let mut statement = self.connection.prepare(&format!("PRAGMA incremental_vacuum({})", spare.min(most)))?;
            let mut steps = statement.query([])?;
            while steps.next()?.is_some() {}
        }
        Ok(spare > most)
    }
}
