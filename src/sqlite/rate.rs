//! The statements that keep a rate on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::{Error, Result};
use crate::store::RateTx;

impl RateTx for Transaction<'_> {
    fn add_start(&self, queue: &str, group: &str, number: i64, kept: i64) -> Result<()> {
        self.run(statement!("start_add"), params![queue, group, number, self.now.ms()])?;
        self.run(statement!("start_forget"), params![queue, group, number.saturating_sub(kept)])?;
        Ok(())
    }

    fn forget_starts(&self, queue: &str, before: i64, limit: i64) -> Result<usize> {
        self.run(statement!("starts_forget"), params![queue, before, limit])
    }

    fn hold_group(&self, queue: &str, group: &str, until: i64) -> Result<()> {
        self.run(statement!("hold_add"), params![queue, group, until])?;
        self.run(statement!("group_moved"), params![queue, group])?;
        Ok(())
    }

    fn free_groups(&self, queue: &str, furthest: i64, limit: usize) -> Result<Vec<String>> {
        let groups: Vec<String> = {
            let mut statement = self.connection.prepare_cached(statement!("holds_over"))?;
            let rows = statement.query_map(params![queue, self.now.ms(), furthest, limit as i64], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        for group in &groups {
            if self.run(statement!("hold_end"), params![queue, group])? == 0 {
                return Err(Error::disagreement(format_args!("the hold of group {group:?}")));
            }
            self.run(statement!("group_moved"), params![queue, group])?;
        }
        Ok(groups)
    }

    fn groups_moved(&self, queue: &str) -> Result<()> {
        self.connection.prepare_cached(statement!("groups_moved"))?.execute(params![queue])?;
        Ok(())
    }
}
