//! Recurring schedules: one enqueue a tick, made by whoever claims first after it, in the claim's own transaction.

use super::Queue;
use super::enqueue::prepared;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::{Event, KeyName, LATEST_MS, NewItem, Now, Schedule};
use crate::rules::name;
use crate::rules::tick::Timing;

/// A clock that goes back by less was only adjusted.
const SMALL_STEP_MS: i64 = 3_600_000;
/// How many schedules one claim lets tick.
pub(super) const TICKS_AT_A_TIME: usize = 64;

impl Queue {
    /// Adds a schedule, or gives the one of that name a new shape. One whose timing stays keeps its next tick.
    pub fn schedule(&self, name: &str, timing: Timing, mut item: NewItem) -> Result<Schedule> {
        name::check("a schedule's name", name)?;
        timing.check(self.options.clock.now())?;
        let row = self.prepare(item.clone())?.row;
        if let (Some(key), Some(made)) = (&mut item.key, &row.key) {
            key.name = KeyName::Given(made.clone());
        }
        self.run(Verb::Configure, |tx| {
            let known = tx.schedules(self.name())?.into_iter().find(|known| known.name == name);
            let next_at = match &known {
                Some(known) if known.timing == timing => known.next_at,
                _ => timing.next(tx.now().ms(), tx.now())?,
            };
            let (last_at, last_id) = known.map_or((None, None), |known| (known.last_at, known.last_id));
            let schedule =
                Schedule { name: name.to_owned(), timing, next_at, last_at, last_id, item, checksum: row.checksum };
            tx.set_schedule(self.name(), &schedule, &row)?;
            tx.tell(Event::Changed);
            Ok(schedule)
        })
    }

    pub fn schedules(&self) -> Result<Vec<Schedule>> {
        self.read(|view| view.schedules(self.name()))
    }

    /// Says whether there was one of that name.
    pub fn unschedule(&self, name: &str) -> Result<bool> {
        self.run(Verb::Configure, |tx| tx.unschedule(self.name(), name))
    }

    /// Enqueues what is due, once however many ticks were missed; returns how many schedules ticked.
    pub(super) fn tick(&self, tx: &Change) -> Result<usize> {
        let due = tx.schedules_due(self.name(), TICKS_AT_A_TIME)?;
        let count = due.len();
        for schedule in due {
            // A pattern that another program broke never comes again, rather than at every claim.
            let next_at = schedule.timing.next(schedule.next_at, tx.now()).unwrap_or(LATEST_MS);
            let mut item = prepared(schedule.item);
            // The sum of what was scheduled, not of what is read now: so that damage is seen when it is claimed.
            item.row.checksum = schedule.checksum;
            match self.put(tx, item) {
                Ok(id) => tx.schedule_ticked(self.name(), &schedule.name, next_at, id)?,
                // One tick that cannot be written must not keep every claim of the queue from its item.
                Err(Error::Ignored(text)) => {
                    let warning = format!("the schedule {:?} did not tick: {text}", schedule.name);
                    self.session()?.warnings.lock().push(warning);
                    tx.move_schedule(self.name(), &schedule.name, next_at)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// After the clock went back: a tick must not be further ahead than its timing says.
    pub(super) fn bring_ticks_closer(&self, tx: &Change) -> Result<()> {
        for schedule in tx.schedules(self.name())? {
            if let Some(next_at) = closer(&schedule, tx.now()) {
                tx.move_schedule(self.name(), &schedule.name, next_at)?;
            }
        }
        Ok(())
    }

    /// Whether there is a tick that `bring_ticks_closer` would move.
    pub(super) fn is_any_tick_ahead(&self, now: Now) -> Result<bool> {
        Ok(self.schedules()?.iter().any(|schedule| closer(schedule, now).is_some()))
    }
}

/// When a schedule should tick next, if that is sooner than it says.
fn closer(schedule: &Schedule, now: Now) -> Option<i64> {
    // After a small step back the tick it has just made does not come again.
    let ahead = schedule.last_at.filter(|last| (0..SMALL_STEP_MS).contains(&(last - now.ms())));
    let next_at = schedule.timing.next(schedule.next_at, ahead.map_or(now, Now)).ok()?;
    (next_at < schedule.next_at).then_some(next_at)
}
