//! Waiting for work: a bell for commits of this process, file events for those of others, and when to look again.
//!
//! A bell or an event is a hint; what a look at the file finds is the truth. So nobody sleeps longer than [`POLL`] without
//! looking, and a hint costs at most a look too many.

#[cfg_attr(not(target_os = "linux"), path = "alarm_elsewhere.rs")]
mod alarm;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::sqlite::{Database, Lent};
use crate::sync::Mutex;
use alarm::Alarm;

/// The longest time without a look: a hint may have been missed, or a worker killed.
const POLL: Duration = Duration::from_millis(500);

/// A file event comes before its commit can be seen, by the time of a sync, so we look again after growing pauses.
const PAUSES: [Duration; 9] = [
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(400),
    Duration::from_micros(800),
    Duration::from_micros(1_600),
    Duration::from_micros(3_200),
    Duration::from_micros(6_400),
    Duration::from_micros(12_800),
    Duration::from_micros(25_600),
];
/// From here on a pause is long enough to be ended by the next event.
const LONG: usize = 4;
/// While others go on writing, the pauses do not begin anew more often than this.
const STEADY: Duration = Duration::from_millis(2);

/// How many alarms are kept for the next sleepers.
const SPARE: usize = 4;

/// Rung after each commit of this process that somebody may be waiting for.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: u64,
    sleepers: Vec<Arc<Alarm>>,
    /// Those of earlier sleepers: the system takes up to 20 ms to close one.
    spare: Vec<Arc<Alarm>>,
    /// How many of them wait for an item's end.
    for_endings: usize,
}

impl Bell {
    /// Something may be claimable.
    pub fn ring(&self) {
        let mut state = self.state.lock();
        state.count += 1;
        state.sleepers.iter().for_each(|sleeper| sleeper.ring());
    }

    /// An item has ended; most sleepers need not know.
    pub fn ring_for_endings(&self) {
        let mut state = self.state.lock();
        if state.for_endings > 0 {
            state.count += 1;
            state.sleepers.iter().for_each(|sleeper| sleeper.ring());
        }
    }

    fn count(&self) -> u64 {
        self.state.lock().count
    }
}

/// What a vigil is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    Work,
    Endings,
}

/// Somebody's wait, from its first look to its last. It must begin before the first look.
pub struct Vigil {
    database: Arc<Database>,
    alarm: Arc<Alarm>,
    awaiting: Awaiting,
    /// What the bell's count was at the last look.
    seen: u64,
    /// A connection of our own, whose `data_version` tells of commits by others since the last look.
    watch: Option<(Lent, i64)>,
    /// How many pauses have passed since a file event, and when they began.
    pauses: Option<usize>,
    hurried_at: Option<Instant>,
    looked_at: Instant,
}

impl Vigil {
    pub fn begin(database: Arc<Database>, awaiting: Awaiting) -> Result<Self> {
        let spare = database.bell().state.lock().spare.pop();
        let alarm = match spare {
            Some(alarm) => alarm,
            None => Arc::new(Alarm::new(database.log_path())?),
        };
        alarm.reset();
        let mut state = database.bell().state.lock();
        state.sleepers.push(alarm.clone());
        state.for_endings += usize::from(awaiting == Awaiting::Endings);
        let seen = state.count;
        drop(state);
        let mut vigil = Self {
            database,
            alarm,
            awaiting,
            seen,
            watch: None,
            pauses: None,
            hurried_at: None,
            looked_at: Instant::now(),
        };
        vigil.has_changed()?;
        Ok(vigil)
    }

    /// Sleeps until it is worth looking again, and says so; `false` when `limit` was over or a signal came. `by_itself` is
    /// when something happens without anybody's commit.
    pub fn sleep(&mut self, by_itself: Option<Duration>, limit: Duration) -> Result<bool> {
        let started = Instant::now();
        loop {
            let count = self.database.bell().count();
            let is_time = by_itself.is_some_and(|time| started.elapsed() >= time) || self.looked_at.elapsed() >= POLL;
            // The version is noted before the look that follows, so that nothing falls in between.
            if (self.pauses.is_some() && self.has_changed()?) || count != self.seen || is_time {
                self.seen = count;
                self.looked_at = Instant::now();
                return Ok(true);
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let until_poll = POLL.saturating_sub(self.looked_at.elapsed());
            let mut pause =
                left.min(until_poll).min(by_itself.map_or(Duration::MAX, |time| time - started.elapsed().min(time)));
            let in_haste = self.pauses.is_some_and(|passed| passed < LONG);
            if let Some(passed) = self.pauses {
                pause = pause.min(PAUSES[passed]);
                self.pauses = (passed + 1 < PAUSES.len()).then_some(passed + 1);
            }
            let woken = self.alarm.sleep(pause, in_haste);
            if woken.touched {
                let is_fresh = self.hurried_at.is_none_or(|time| time.elapsed() >= STEADY);
                self.pauses = Some(if is_fresh { 0 } else { self.pauses.unwrap_or(LONG).min(LONG) });
                self.hurried_at = is_fresh.then(Instant::now).or(self.hurried_at);
            }
            if woken.interrupted {
                return Ok(false);
            }
        }
    }

    /// Whether anybody has committed since this was asked last.
    fn has_changed(&mut self) -> Result<bool> {
        let Some(before) = self.watch.take() else {
            if let Some(lent) = self.database.lend()? {
                let version = lent.data_version()?;
                self.watch = Some((lent, version));
            }
            return Ok(true);
        };
        let (lent, known) = before;
        let version = lent.data_version()?;
        self.watch = Some((lent, version));
        Ok(version != known)
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        if !self.database.is_of_this_process() {
            // A child never closes its parent's connection.
            std::mem::forget(self.watch.take());
            return;
        }
        if let Some((lent, _)) = self.watch.take() {
            self.database.take_back(lent);
        }
        let mut state = self.database.bell().state.lock();
        state.sleepers.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.alarm));
        if state.spare.len() < SPARE {
            state.spare.push(self.alarm.clone());
        }
        state.for_endings -= usize::from(self.awaiting == Awaiting::Endings);
    }
}
