//! The statements that keep a rate on SQLite.

use rusqlite::params;

use super::{Transaction, statement};
use crate::error::{Error, Result};
use crate::model::Item;
use crate::rules::rate::Rate;
use crate::store::{RateTx, Served, View, WHOLE_QUEUE};

impl Transaction<'_> {
    /// Whether the queue's rate allows a claim now.
    pub(super) fn may_start(&self, served: &Served) -> Result<bool> {
        match served.settings.rate {
            Some(rate) => Ok((self as &dyn View).rate_wait(served.name, WHOLE_QUEUE, rate)?.is_none()),
            None => Ok(true),
        }
    }

    /// Counts a claim. Returns whether the group's rate allows another now; if not, the group is held until it does.
    pub(super) fn count_start(&self, served: &Served, item: &Item) -> Result<bool> {
        if let Some(rate) = served.settings.rate {
            self.add_start(served.name, WHOLE_QUEUE, rate)?;
        }
        let (Some(rate), Some(group)) = (served.settings.group_rate, &item.group) else { return Ok(true) };
        self.add_start(served.name, group, rate)?;
        match (self as &dyn View).rate_wait(served.name, group, rate)? {
            None => Ok(true),
            Some(until) => {
                self.hold_group(served.name, group, until)?;
                Ok(false)
            }
        }
    }

    /// Records the next claim, and forgets those that the rate no longer counts.
    fn add_start(&self, queue: &str, group: &str, rate: Rate) -> Result<()> {
        let number = self.last_start(queue, group)?.saturating_add(1);
        self.run(statement!("start_add"), params![queue, group, number, self.now.ms()])?;
        self.run(statement!("start_forget"), params![queue, group, number.saturating_sub(i64::from(rate.count))])?;
        Ok(())
    }
}

impl RateTx for Transaction<'_> {
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
