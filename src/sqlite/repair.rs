//! The statements with which operators change items, on SQLite.

use rusqlite::{ToSql, params};

use super::{Transaction, statement};
use crate::error::Result;
use crate::store::{EnqueueTx, ItemChange, RepairTx};

impl RepairTx for Transaction<'_> {
    fn retry_failed(
        &self,
        queue: &str,
        id: i64,
        for_all: Option<u32>,
        otherwise: u32,
        run_at: Option<i64>,
    ) -> Result<bool> {
        Ok(self.run(statement!("retry_failed"), params![id, queue, for_all, otherwise, run_at])? == 1)
    }

    fn retry(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        self.change(queue, id, ItemChange::Retry(run_at))
    }

    fn cancel(&self, queue: &str, id: i64) -> Result<bool> {
        self.change(queue, id, ItemChange::Cancel)
    }

    fn cancel_running(&self, queue: &str, id: i64) -> Result<bool> {
        self.change(queue, id, ItemChange::CancelRunning)
    }

    fn run_now(&self, queue: &str, id: i64) -> Result<bool> {
        self.change(queue, id, ItemChange::RunNow)
    }

    fn run_later(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        self.change(queue, id, ItemChange::RunLater(run_at))
    }

    fn replay(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<Option<i64>> {
        let mut statement = self.connection.prepare_cached(statement!("replay"))?;
        let values = params![id, queue, self.now_text(), run_at];
        let made = statement.execute(values).map_err(|error| self.not_inserted(error))?;
        if made == 0 && self.one::<bool>(statement!("replayable"), params![id, queue])?.is_some() {
            return Err(self.without_effect(&format!("the copy of item {id}")));
        }
        Ok((made == 1).then(|| self.connection.last_insert_rowid()))
    }

    fn delete(&self, queue: &str, id: i64) -> Result<bool> {
        self.change(queue, id, ItemChange::Delete)
    }
}

impl Transaction<'_> {
    /// Returns whether the item was changed.
    fn change(&self, queue: &str, id: i64, change: ItemChange) -> Result<bool> {
        with_change(queue, id, change, self.now_text(), |sql, values| Ok(self.run(sql, values)? == 1))
    }
}

/// The statement of a change and its values, for our connection and for the caller's. `now` is text.
pub(super) fn with_change<T>(
    queue: &str,
    id: i64,
    change: ItemChange,
    now: &str,
    run: impl FnOnce(&'static str, &[&dyn ToSql]) -> T,
) -> T {
    match change {
        ItemChange::Retry(run_at) => run(statement!("retry"), params![id, queue, run_at]),
        ItemChange::Cancel => run(statement!("cancel"), params![id, queue, now]),
        ItemChange::CancelRunning => run(statement!("cancel_running"), params![id, queue]),
        ItemChange::RunNow => run(statement!("run_now"), params![id, queue]),
        ItemChange::RunLater(run_at) => run(statement!("run_later"), params![id, queue, run_at]),
        ItemChange::Delete => run(statement!("delete"), params![id, queue]),
    }
}
