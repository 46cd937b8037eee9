//! The watch over the file: when to compare its version after a file event, and when to rest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::alarm::{Events, Woken};
use crate::error::Result;
use crate::store::{ChangeWatch, Store};

/// A file event comes before its commit is visible, by the duration of a sync. So the thread looks again after growing
/// pauses.
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
/// From this index on, a pause is long enough that the next event may end it.
const LONG: usize = 4;
/// While other processes keep writing, the pauses start again at most this often.
const STEADY: Duration = Duration::from_millis(2);

/// The time between looks while other processes keep writing and no change concerns this process.
const REST: Duration = Duration::from_millis(24);
/// How many changes in a row must not concern this process before `REST` applies.
const FRUITLESS: u32 = 8;
/// A change that comes this long after the last one starts a new series.
const QUIET: Duration = Duration::from_millis(50);

/// Detects commits of other processes.
pub(super) struct Watch {
    pub(super) events: Events,
    pub(super) changes: Box<dyn ChangeWatch>,
    /// How many pauses have passed since a file event; `hurried_at` is when they began.
    pub(super) pauses: Option<usize>,
    hurried_at: Option<Instant>,
    changed_at: Option<Instant>,
    /// There were file events during a rest. The next look then assumes a change, without comparing versions first.
    pub(super) is_presumed: bool,
}

impl Watch {
    pub(super) fn begin(store: Arc<dyn Store>, spare: Option<Events>) -> Result<Self> {
        let events = spare.unwrap_or_else(|| Events::new(store.event_file()));
        events.reset();
        let mut changes = store.change_watch()?;
        changes.has_changed()?;
        Ok(Self { events, changes, pauses: None, hurried_at: None, changed_at: None, is_presumed: false })
    }

    /// Records a change; returns whether it came soon after the last one.
    pub(super) fn mark_change(&mut self) -> bool {
        let before = self.changed_at.replace(Instant::now());
        before.is_some_and(|time| time.elapsed() < QUIET)
    }

    /// Returns what is left of the rest after a change, if many changes before it did not concern this process. A look
    /// always follows the rest.
    pub(super) fn rest(&mut self, fruitless: u32) -> Option<Duration> {
        let since = self.changed_at.filter(|_| fruitless >= FRUITLESS)?.elapsed();
        let left = REST.checked_sub(since).filter(|left| !left.is_zero())?;
        self.pauses = Some(PAUSES.len() - 1);
        Some(left)
    }

    pub(super) fn is_in_haste(&self) -> bool {
        self.pauses.is_some_and(|passed| passed < LONG)
    }

    /// The pause before the next look after a file event.
    pub(super) fn next_pause(&mut self) -> Duration {
        let Some(passed) = self.pauses else { return Duration::MAX };
        self.pauses = (passed + 1 < PAUSES.len()).then_some(passed + 1);
        PAUSES[passed]
    }

    pub(super) fn woke(&mut self, woken: Woken) {
        if woken.touched {
            self.hurry();
        } else if woken.is_blind {
            // One more look, without short pauses after it.
            self.pauses = Some(PAUSES.len() - 1);
        }
    }

    pub(super) fn hurry(&mut self) {
        let is_fresh = self.hurried_at.is_none_or(|time| time.elapsed() >= STEADY);
        self.pauses = Some(if is_fresh { 0 } else { self.pauses.unwrap_or(LONG).min(LONG) });
        self.hurried_at = is_fresh.then(Instant::now).or(self.hurried_at);
    }
}
