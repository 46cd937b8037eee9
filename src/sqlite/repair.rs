//! The statements with which operators change items, on SQLite.

use rusqlite::{ToSql, params};

use super::{Transaction, statement};
use crate::error::Result;
use crate::model::Now;
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
        Ok(self
            .change_items(statement!("retry_failed"), params![id, queue, for_all, otherwise, run_at, self.now.ms()])?
            == 1)
    }

    fn retry(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        let is_back = self.change(queue, id, ItemChange::Retry(run_at))?;
        if is_back {
            self.run(statement!("awaited_by"), params![id])?;
        }
        Ok(is_back)
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
        self.let_triggers_fire()?;
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
        // A claim that is asked to stop, or an item that stays cancelled, changes no count.
        let is_quiet = matches!(change, ItemChange::CancelRunning | ItemChange::CancelForGood);
        with_change(queue, id, change, (self.now, self.now_text()), |sql, values| {
            Ok(if is_quiet { self.run(sql, values)? } else { self.change_items(sql, values)? } == 1)
        })
    }
}

/// The statement of a change and its values, for our connection and for the caller's. `now` as a number and as text.
pub(super) fn with_change<T>(
    queue: &str,
    id: i64,
    change: ItemChange,
    (now, text): (Now, &str),
    run: impl FnOnce(&'static str, &[&dyn ToSql]) -> T,
) -> T {
    match change {
        ItemChange::Retry(run_at) => run(statement!("retry"), params![id, queue, run_at, now.ms()]),
        ItemChange::Cancel => run(statement!("cancel"), params![id, queue, text]),
        ItemChange::CancelRunning => run(statement!("cancel_running"), params![id, queue]),
        ItemChange::CancelForGood => run(statement!("cancel_for_good"), params![id, queue]),
        ItemChange::RunNow => run(statement!("run_now"), params![id, queue]),
        ItemChange::RunLater(run_at) => run(statement!("run_later"), params![id, queue, run_at]),
        ItemChange::Delete => run(statement!("delete"), params![id, queue]),
    }
}
