//! The statements with which operators change items, on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::Result;
use crate::store::{EnqueueTx, RepairTx};

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
        let is_back = self.change_items(statement!("retry"), params![id, queue, run_at, self.now.ms()])? == 1;
        if is_back {
            self.run(statement!("awaited_by"), params![id])?;
        }
        Ok(is_back)
    }

    fn cancel(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.change_items(statement!("cancel"), params![id, queue, self.now_text()])? == 1)
    }

    fn cancel_running(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.run(statement!("cancel_running"), params![id, queue])? == 1)
    }

    fn run_now(&self, queue: &str, id: i64) -> Result<bool> {
        Ok(self.change_items(statement!("run_now"), params![id, queue])? == 1)
    }

    fn run_later(&self, queue: &str, id: i64, run_at: Option<i64>) -> Result<bool> {
        Ok(self.change_items(statement!("run_later"), params![id, queue, run_at])? == 1)
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
        Ok(self.change_items(statement!("delete"), params![id, queue])? == 1)
    }
}
