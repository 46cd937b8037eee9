//! Adding or replacing a schedule on the caller's own connection.

use super::{Outcome, Rows, Step, Steps, text};
use crate::error::Result;
use crate::model::{NewItem, Schedule, Value};
use crate::queue::Queue;
use crate::rules::tick::Timing;
use crate::store::{ForeignStatements, NewRow};

pub struct ScheduleSteps {
    foreign: &'static dyn ForeignStatements,
    queue: String,
    schedule: Schedule,
    row: NewRow,
    is_written: bool,
}

impl ScheduleSteps {
    pub fn new(queue: &Queue, name: &str, timing: Timing, item: NewItem) -> Result<Self> {
        let now = queue.options().clock.now();
        let (item, row) = queue.scheduled(name, &timing, item)?;
        let next_at = timing.next(now.ms(), now)?;
        let checksum = row.checksum;
        let schedule =
            Schedule { name: name.to_owned(), timing, next_at, last_at: None, last_id: None, item, checksum };
        let foreign = queue.session()?.store.foreign();
        Ok(Self { foreign, queue: queue.name().to_owned(), schedule, row, is_written: false })
    }
}

impl Steps for ScheduleSteps {
    fn begin(&mut self) -> Result<Step> {
        Ok(Step::Run(self.foreign.known_schedule(&self.queue, &self.schedule.name)?))
    }

    fn next(&mut self, rows: &Rows) -> Result<Step> {
        if self.is_written {
            return Ok(Step::Done(Outcome::Schedule(Box::new(self.schedule.clone()))));
        }
        if let Some(known) = rows.first() {
            let timing = match number(known, 1) {
                Some(every) => Timing::Every(every),
                None => Timing::Cron { pattern: text(known, 0), tz: text(known, 2) },
            };
            if timing == self.schedule.timing
                && let Some(next_at) = number(known, 3)
            {
                self.schedule.next_at = next_at;
            }
            (self.schedule.last_at, self.schedule.last_id) = (number(known, 4), number(known, 5));
        }
        self.is_written = true;
        Ok(Step::Run(self.foreign.schedule(&self.queue, &self.schedule, &self.row)?))
    }
}

fn number(row: &[Value], column: usize) -> Option<i64> {
    if let Some(Value::Integer(number)) = row.get(column) { Some(*number) } else { None }
}
