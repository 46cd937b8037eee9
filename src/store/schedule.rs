//! What an engine must do for recurring schedules.

use super::NewRow;
use crate::error::Result;
use crate::model::Schedule;

pub trait ScheduleTx {
    /// Stores the schedule under its name. Locks it.
    fn set_schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<()>;

    /// Schedules that are due; a bounded number. Locks them, and skips those that another transaction has locked.
    fn schedules_due(&self, queue: &str, limit: usize) -> Result<Vec<Schedule>>;

    /// Records that the schedule ticked and is next due at `next_at`. `id`: the item it enqueued or found.
    fn schedule_ticked(&self, queue: &str, name: &str, next_at: i64, id: Option<i64>) -> Result<()>;

    /// Sets when the schedule is next due.
    fn move_schedule(&self, queue: &str, name: &str, next_at: i64) -> Result<()>;

    /// Removes the schedule of that name. Returns whether there was one.
    fn unschedule(&self, queue: &str, name: &str) -> Result<bool>;
}
