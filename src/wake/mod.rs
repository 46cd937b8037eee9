//! Waiting for work: a bell for commits of this process, file events for those of others, and when to look again.
//!
//! A bell or an event is a hint; what a look at the file finds is the truth. So nobody sleeps longer than [`POLL`] without
//! looking, and a hint costs at most a look too many.
//!
//! Of all who sleep over one file, one keeps watch over it and rings the others: a thousand waits cost one connection and
//! one watch, and a bell each.

#[cfg_attr(not(target_os = "linux"), path = "alarm_elsewhere.rs")]
mod alarm;

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::sqlite::{Database, Lent};
use crate::sync::Mutex;
use alarm::{Alarm, Events, Woken};

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

/// Rung after each commit of this process that somebody may be waiting for.
#[derive(Default)]
pub struct Bell {
    state: Mutex<State>,
    /// Held while a vigil begins: nobody has a first look before the watch has its first version.
    beginning: Mutex<()>,
}

#[derive(Default)]
struct State {
    count: u64,
    vigils: Vec<(Arc<Alarm>, Awaiting)>,
    asleep: Vec<Arc<Alarm>>,
    /// Where it is while nobody who sleeps has it in hand.
    watch: Option<Watch>,
    is_watched: bool,
    /// Of the watch before: the system takes up to 20 ms to close it.
    spare: Option<Events>,
}

impl Bell {
    /// Something may be claimable.
    pub fn ring(&self) {
        self.state.lock().ring();
    }

    /// An item has ended; most sleepers need not know.
    pub fn ring_for_ending(&self, id: i64) {
        let mut state = self.state.lock();
        let ending = Awaiting::Ending(id);
        if state.vigils.iter().any(|(_, awaiting)| *awaiting == ending) {
            state.count += 1;
            state.vigils.iter().filter(|(_, awaiting)| *awaiting == ending).for_each(|(alarm, _)| alarm.ring());
        }
    }
}

impl State {
    fn ring(&mut self) -> u64 {
        self.count += 1;
        self.vigils.iter().for_each(|(alarm, _)| alarm.ring());
        self.count
    }
}

/// What a vigil is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    Work,
    /// The end of the item with this id.
    Ending(i64),
}

/// What tells of commits by other processes.
struct Watch {
    events: Events,
    /// A connection of our own, whose `data_version` tells of commits by others since it was asked last.
    version: Option<(Lent, i64)>,
    /// How many pauses have passed since a file event, and when they began.
    pauses: Option<usize>,
    hurried_at: Option<Instant>,
}

impl Watch {
    fn begin(database: &Database, spare: Option<Events>) -> Result<Self> {
        let events = spare.unwrap_or_else(|| Events::new(database.log_path()));
        events.reset();
        let mut watch = Self { events, version: None, pauses: None, hurried_at: None };
        watch.has_changed(database)?;
        Ok(watch)
    }

    /// Whether anybody has committed since this was asked last.
    fn has_changed(&mut self, database: &Database) -> Result<bool> {
        let Some((lent, known)) = self.version.take() else {
            if let Some(lent) = database.lend()? {
                let version = lent.data_version()?;
                self.version = Some((lent, version));
            }
            return Ok(true);
        };
        let version = lent.data_version()?;
        self.version = Some((lent, version));
        Ok(version != known)
    }

    fn is_in_haste(&self) -> bool {
        self.pauses.is_some_and(|passed| passed < LONG)
    }

    /// The pause before the next look after a file event.
    fn next_pause(&mut self) -> Duration {
        let Some(passed) = self.pauses else { return Duration::MAX };
        self.pauses = (passed + 1 < PAUSES.len()).then_some(passed + 1);
        PAUSES[passed]
    }

    fn note(&mut self, woken: Woken) {
        if woken.touched {
            self.hurry();
        } else if woken.is_blind {
            // The next look, and no haste after it.
            self.pauses = Some(PAUSES.len() - 1);
        }
    }

    fn hurry(&mut self) {
        let is_fresh = self.hurried_at.is_none_or(|time| time.elapsed() >= STEADY);
        self.pauses = Some(if is_fresh { 0 } else { self.pauses.unwrap_or(LONG).min(LONG) });
        self.hurried_at = is_fresh.then(Instant::now).or(self.hurried_at);
    }
}

/// Somebody's wait, from its first look to its last. It must begin before the first look.
pub struct Vigil {
    database: Arc<Database>,
    alarm: Arc<Alarm>,
    /// What the bell's count was at the last look.
    seen: u64,
    looked_at: Instant,
}

impl Vigil {
    pub fn begin(database: Arc<Database>, awaiting: Awaiting) -> Result<Self> {
        let alarm = Arc::new(Alarm::new()?);
        let bell = database.bell();
        let beginning = bell.beginning.lock();
        let mut state = bell.state.lock();
        state.vigils.push((alarm.clone(), awaiting));
        let (seen, is_watched, spare) = (state.count, state.is_watched, state.spare.take());
        drop(state);
        let vigil = Self { database: database.clone(), alarm, seen, looked_at: Instant::now() };
        if is_watched {
            bell.state.lock().spare = spare;
        } else {
            let watch = Watch::begin(&database, spare)?;
            let mut state = bell.state.lock();
            state.watch = Some(watch);
            state.is_watched = true;
        }
        drop(beginning);
        Ok(vigil)
    }

    /// A forked child has nothing of its parent's: neither the bell nor the watch may be touched there.
    pub fn is_of_this_process(&self) -> bool {
        self.database.is_of_this_process()
    }

    /// Sleeps until it is worth looking again, and says so; `false` when `limit` was over or a signal came. `by_itself` is
    /// when something happens without anybody's commit.
    pub fn sleep(&mut self, by_itself: Option<Duration>, limit: Duration) -> Result<bool> {
        self.state().asleep.push(self.alarm.clone());
        let mut watch = None;
        let slept = self.sleep_or_watch(by_itself, limit, &mut watch);
        let mut state = self.database.bell().state.lock();
        state.asleep.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.alarm));
        if watch.is_some() {
            state.watch = watch;
        }
        if state.watch.is_some()
            && let Some(next) = state.asleep.last()
        {
            // It wakes, and takes the watch.
            next.ring();
        }
        drop(state);
        slept
    }

    fn sleep_or_watch(
        &mut self,
        by_itself: Option<Duration>,
        limit: Duration,
        in_hand: &mut Option<Watch>,
    ) -> Result<bool> {
        let started = Instant::now();
        loop {
            let mut state = self.state();
            if in_hand.is_none() {
                *in_hand = state.watch.take();
            }
            let mut count = state.count;
            drop(state);
            // The version is noted before the looks that follow, so that nothing falls in between.
            if let Some(watch) = in_hand
                && watch.pauses.is_some()
                && watch.has_changed(&self.database)?
            {
                count = self.state().ring();
            }
            let is_late = self.looked_at.elapsed() >= POLL;
            if is_late {
                self.database.check_is_there()?;
            }
            let is_time = is_late || by_itself.is_some_and(|time| started.elapsed() >= time);
            if count != self.seen || is_time {
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
            let in_haste = in_hand.as_ref().is_some_and(Watch::is_in_haste);
            if let Some(watch) = in_hand {
                pause = pause.min(watch.next_pause());
            }
            let woken = self.alarm.sleep(pause, in_hand.as_ref().map(|watch| &watch.events), in_haste);
            if let Some(watch) = in_hand {
                watch.note(woken);
            }
            if woken.interrupted {
                return Ok(false);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.database.bell().state.lock()
    }
}

impl Drop for Vigil {
    fn drop(&mut self) {
        if !self.is_of_this_process() {
            // A child never closes its parent's connection, nor what holds one.
            std::mem::forget(self.database.clone());
            return;
        }
        let mut state = self.database.bell().state.lock();
        state.vigils.retain(|(alarm, _)| !Arc::ptr_eq(alarm, &self.alarm));
        if !state.vigils.is_empty() {
            return;
        }
        state.is_watched = false;
        let Some(watch) = state.watch.take() else { return };
        state.spare = Some(watch.events);
        drop(state);
        if let Some((lent, _)) = watch.version {
            self.database.take_back(lent);
        }
    }
}
