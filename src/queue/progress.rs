//! Progress of an item, which never delays its handler. If a report cannot be written at once, the next renewal or the
//! end of the claim writes it.

use std::time::{Duration, Instant};

use super::Queue;
use super::claim::ClaimedItem;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::heartbeat::Nudge;
use crate::model::Receipt;
use crate::rules::outcome::Settled;
use crate::store::LockWait;
use crate::sync::Mutex;

/// The shortest time between two writes of progress.
const EVERY: Duration = Duration::from_millis(200);

/// How long a report may wait for other writers. One of them may be the handler's own open transaction.
const PATIENCE: Duration = Duration::from_millis(50);

/// Progress that the handler has reported and that is not known to be committed.
#[derive(Default)]
pub(super) struct UnsavedProgress(Mutex<State>);

#[derive(Default)]
struct State {
    latest: Option<(f64, Option<String>)>,
    /// How many reports were made.
    said: u64,
    /// When a write was last tried.
    tried_at: Option<Instant>,
    /// Whether the last write found the file locked.
    was_busy: bool,
    nudge: Option<Nudge>,
}

impl UnsavedProgress {
    /// From now on, the heartbeat can be asked to write the progress.
    pub(super) fn kept_by(&self, nudge: Nudge) {
        self.0.lock().nudge = Some(nudge);
    }

    /// Stores a report. Returns its number and how long a write may wait, or `None` if it is too early for a write.
    fn note(&self, fraction: f64, note: Option<String>) -> Option<(u64, Duration)> {
        let mut state = self.0.lock();
        state.latest = Some((fraction, note));
        state.said += 1;
        if fraction < 1.0 && state.tried_at.is_some_and(|time| time.elapsed() < EVERY) {
            return None;
        }
        state.tried_at = Some(Instant::now());
        Some((state.said, if state.was_busy { Duration::ZERO } else { PATIENCE }))
    }

    /// Returns the latest unsaved report. It stays unsaved: writing it twice does no harm.
    pub(super) fn latest(&self) -> Option<(f64, Option<String>)> {
        let mut state = self.0.lock();
        state.was_busy = false;
        state.latest.clone()
    }

    /// Writes the latest unsaved report; returns `false` if the claim was lost. The report stays unsaved: the
    /// transaction may be rolled back, and writing it twice does no harm.
    fn write(&self, tx: &Change, queue: &str, receipt: Receipt) -> Result<bool> {
        let mut state = self.0.lock();
        state.was_busy = false;
        match &state.latest {
            Some((fraction, note)) => tx.set_progress(queue, receipt, *fraction, note.as_deref()),
            None => Ok(true),
        }
    }

    /// Marks the report as committed, unless a newer one was made since.
    fn mark_written(&self, number: u64) {
        let mut state = self.0.lock();
        if state.said == number {
            state.latest = None;
        }
    }

    /// The report could not be written; asks the heartbeat to write it soon.
    fn leave_to_beat(&self) {
        let mut state = self.0.lock();
        state.was_busy = true;
        let nudge = state.nudge.clone();
        drop(state);
        if let Some(nudge) = nudge {
            nudge.soon();
        }
    }
}

impl Queue {
    /// Records an item's progress; returns `false` if the claim is known to be lost.
    pub fn set_progress(&self, held: &ClaimedItem, fraction: f64, note: Option<String>) -> Result<bool> {
        self.check_is_ours(held)?;
        self.session()?;
        if held.is_settled() || held.is_known_lost() {
            return Ok(false);
        }
        let Some((number, patience)) = held.unsaved_progress.note(fraction, note) else { return Ok(true) };
        let wait = LockWait { limit: patience.min(self.options.patience), ..self.wait() };
        let written =
            self.run_within(Verb::Progress, wait, |tx| held.unsaved_progress.write(tx, self.name(), held.receipt()));
        match written {
            Ok(true) => held.unsaved_progress.mark_written(number),
            Ok(false) => held.mark_settled(Settled::Lost),
            Err(Error::Busy(_) | Error::DiskFull(_)) => held.unsaved_progress.leave_to_beat(),
            Err(error) => return Err(error),
        }
        Ok(!held.is_known_lost())
    }
}
