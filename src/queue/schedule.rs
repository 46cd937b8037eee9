//! Recurring schedules: each tick enqueues one item, by the first claim after it is due.

use super::Queue;
use super::enqueue::prepared;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::model::{Event, KeyName, LATEST_MS, NewItem, Now, Schedule};
use crate::rules::name;
use crate::rules::tick::Timing;
use crate::store::{LockWait, NewRow, Scope};

/// A clock that goes back by less than this was only adjusted.
const SMALL_STEP_MS: i64 = 3_600_000;
/// How many schedules one claim lets tick.
const TICKS_AT_A_TIME: usize = 64;

impl Queue {
    /// Adds a schedule, or replaces the one of that name. If the timing is the same, the next tick is kept.
    pub fn schedule(&self, name: &str, timing: Timing, item: NewItem) -> Result<Schedule> {
        let (item, row) = self.scheduled(name, &timing, item)?;
        self.run(Verb::Configure, |tx| {
            tx.lock(Scope::Schedules(self.name()))?;
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

    /// Checks a schedule. Returns its item, with the key that its ticks have, and the row.
    pub(super) fn scheduled(&self, name: &str, timing: &Timing, mut item: NewItem) -> Result<(NewItem, NewRow)> {
        name::check("a schedule's name", name)?;
        timing.check(self.options.clock.now())?;
        let row = self.prepare(item.clone())?.row;
        if let (Some(key), Some(made)) = (&mut item.key, &row.key) {
            key.name = KeyName::Given(made.clone());
        }
        Ok((item, row))
    }

    pub fn schedules(&self) -> Result<Vec<Schedule>> {
        self.read(|view| view.schedules(self.name()))
    }

    /// Returns whether there was a schedule of that name.
    pub fn unschedule(&self, name: &str) -> Result<bool> {
        self.run(Verb::Configure, |tx| tx.unschedule(self.name(), name))
    }

    /// Enqueues the items of due schedules, once per schedule however many ticks were missed. A bounded number: the rest
    /// is left to the next claim.
    pub(super) fn tick_due(&self, wait: LockWait) -> Result<()> {
        self.run_within(Verb::Tick, wait, |tx| self.tick(tx))
    }

    fn tick(&self, tx: &Change) -> Result<()> {
        tx.lock(Scope::Schedules(self.name()))?;
        for schedule in tx.schedules_due(self.name(), TICKS_AT_A_TIME)? {
            // If another program broke the pattern, the schedule never ticks again, instead of at every claim.
            let next_at = schedule.timing.next(schedule.next_at, tx.now()).unwrap_or(LATEST_MS);
            let mut item = prepared(schedule.item);
            // The checksum of the item as scheduled, not as read now. So a claim detects damage that happened in
            // between.
            item.row.checksum = schedule.checksum;
            match tx.put(self.name(), item) {
                Ok(id) => tx.schedule_ticked(self.name(), &schedule.name, next_at, id)?,
                // A tick that cannot be written must not block all claims of the queue.
                Err(Error::Ignored(text)) => {
                    let warning = format!("the schedule {:?} did not tick: {text}", schedule.name);
                    self.session()?.warnings.lock().push(warning);
                    tx.move_schedule(self.name(), &schedule.name, next_at)?;
                }
                Err(error) => return Err(error),
            }
        }
        tx.tell(Event::Claimable);
        Ok(())
    }

    /// Called after the clock went back: moves ticks that are further ahead than their timing allows.
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

/// When a schedule should tick next, if that is earlier than its recorded next tick.
fn closer(schedule: &Schedule, now: Now) -> Option<i64> {
    // After a small step back, the tick just made is not repeated.
    let ahead = schedule.last_at.filter(|last| (0..SMALL_STEP_MS).contains(&(last - now.ms())));
    let next_at = schedule.timing.next(schedule.next_at, ahead.map_or(now, Now)).ok()?;
    (next_at < schedule.next_at).then_some(next_at)
}
