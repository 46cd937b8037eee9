//! What an engine must do for recurring schedules.

use super::NewRow;
use crate::error::Result;
use crate::model::Schedule;

pub trait ScheduleTx {
    /// The schedule is stored under its name. Locks it.
    fn set_schedule(&self, queue: &str, schedule: &Schedule, row: &NewRow) -> Result<()>;

    /// Schedules that are due, a bounded number. Locks them, and skips those that another transaction has locked.
    fn schedules_due(&self, queue: &str, limit: usize) -> Result<Vec<Schedule>>;

    /// The schedule has enqueued item `id`, and is due again at `next_at`.
    fn schedule_ticked(&self, queue: &str, name: &str, next_at: i64, id: i64) -> Result<()>;

    /// The schedule is due at `next_at`.
    fn move_schedule(&self, queue: &str, name: &str, next_at: i64) -> Result<()>;

    /// There is no schedule of that name; return whether there was one.
    fn unschedule(&self, queue: &str, name: &str) -> Result<bool>;
}
