//! The statements of recurring schedules on SQLite.

use rusqlite::{ToSql, params};

use super::rows::read_schedule;
use super::{Transaction, statement};
use crate::error::{Error, Result};
use crate::model::Schedule;
use crate::rules::tick::Timing;
use crate::store::{NewRow, ScheduleTx};

impl ScheduleTx for Transaction<'_> {
    fn set_schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<()> {
        with_schedule_values(queue, schedule, row, |values| self.run(statement!("schedule"), values))?;
        Ok(())
    }

    fn schedules_due(&self, queue: &str, limit: usize) -> Result<Vec<Schedule>> {
        let mut statement = self.connection.prepare_cached(statement!("schedules_due"))?;
        let rows = statement.query_map(params![queue, self.now.ms(), limit as i64], read_schedule)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn schedule_ticked(&self, queue: &str, name: &str, next_at: i64, id: Option<i64>) -> Result<()> {
        match self.run(statement!("schedule_ticked"), params![queue, name, next_at, self.now.ms(), id])? {
            0 => Err(Error::disagreement(format_args!("schedule {name:?}"))),
            _ => Ok(()),
        }
    }

    fn move_schedule(&self, queue: &str, name: &str, next_at: i64) -> Result<()> {
        self.run(statement!("schedule_move"), params![queue, name, next_at])?;
        Ok(())
    }

    fn unschedule(&self, queue: &str, name: &str) -> Result<bool> {
        Ok(self.run(statement!("unschedule"), params![queue, name])? == 1)
    }
}

/// Passes on the values of `sql/schedule.sql`.
pub fn with_schedule_values<T>(
    queue: &str,
    schedule: &Schedule,
    row: &NewRow,
    run: impl FnOnce(&[&dyn ToSql]) -> Result<T>,
) -> Result<T> {
    let (cron, every, tz) = match &schedule.timing {
        Timing::Cron { pattern, tz } => (Some(pattern.as_str()), None, tz.as_str()),
        Timing::Every(every) => (None, Some(*every), "UTC"),
    };
    run(params![
        queue,
        schedule.name,
        cron,
        every,
        tz,
        schedule.next_at,
        row.content,
        row.content_type,
        row.project,
        row.source_path,
        row.doc_date,
        row.priority,
        row.max_retries,
        row.headers,
        row.group,
        row.key,
        row.checksum,
    ])
}
