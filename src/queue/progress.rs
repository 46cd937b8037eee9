//! How far the work on an item is. It never keeps the work waiting: what cannot be written at once is written along with
//! the next beat, or with the end of the claim.

use std::time::{Duration, Instant};

use super::Queue;
use super::claim::ClaimedItem;
use super::run::{Change, Verb};
use crate::error::{Error, Result};
use crate::heartbeat::Nudge;
use crate::model::Receipt;
use crate::rules::outcome::Settled;
use crate::store::Wait;
use crate::sync::Mutex;

/// It is not written more often than this.
const EVERY: Duration = Duration::from_millis(200);

/// How long the work may be kept waiting for other writers, of which its own open transaction may be one.
const PATIENCE: Duration = Duration::from_millis(50);

/// What the holder of a claim has said and nobody is known to have written yet.
#[derive(Default)]
pub(super) struct UnsavedProgress(Mutex<State>);

#[derive(Default)]
struct State {
    latest: Option<(f64, Option<String>)>,
    /// How often something was said.
    said: u64,
    /// When it was last tried to write.
    tried_at: Option<Instant>,
    /// The last try found the file taken.
    was_busy: bool,
    nudge: Option<Nudge>,
}

impl UnsavedProgress {
    /// From now on a beat can be asked to write it.
    pub(super) fn kept_by(&self, nudge: Nudge) {
        self.0.lock().nudge = Some(nudge);
    }

    /// Notes what was said. Gives it a number and says how long a try to write it may wait; `None` if it is too early for
    /// one.
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

    /// What was said last and is still to be written. It stays to be written: to write it twice does no harm.
    pub(super) fn latest(&self) -> Option<(f64, Option<String>)> {
        let mut state = self.0.lock();
        state.was_busy = false;
        state.latest.clone()
    }

    /// Writes what was said last, if that is still to be done; `false` when the claim was lost. It stays to be done: the
    /// transaction may still be undone, and to write it twice does no harm.
    fn write(&self, tx: &Change, queue: &str, receipt: Receipt) -> Result<bool> {
        let mut state = self.0.lock();
        state.was_busy = false;
        match &state.latest {
            Some((fraction, note)) => tx.set_progress(queue, receipt, *fraction, note.as_deref()),
            None => Ok(true),
        }
    }

    /// The same along with what is worth more, a lease or a result: an error that leaves the transaction whole costs only
    /// what was said.
    pub(super) fn write_along(&self, tx: &Change, queue: &str, receipt: Receipt) -> Result<()> {
        match self.write(tx, queue, receipt) {
            Err(error) if matches!(error, Error::Io(_)) || !tx.is_open() => Err(error),
            _ => Ok(()),
        }
    }

    /// It is committed, unless more was said since.
    fn note_written(&self, number: u64) {
        let mut state = self.0.lock();
        if state.said == number {
            state.latest = None;
        }
    }

    /// It could not be written; a beat is to try soon.
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
    /// Notes how far the work on an item is; `false` when the claim is known to be lost.
    pub fn set_progress(&self, held: &ClaimedItem, fraction: f64, note: Option<String>) -> Result<bool> {
        self.check_is_ours(held)?;
        self.session()?;
        if held.is_settled() || held.is_known_lost() {
            return Ok(false);
        }
        let Some((number, patience)) = held.unsaved_progress.note(fraction, note) else { return Ok(true) };
        let wait = Wait { limit: patience.min(self.options.patience), ..self.wait() };
        let written =
            self.run_within(Verb::Progress, wait, |tx| held.unsaved_progress.write(tx, self.name(), held.receipt()));
        match written {
            Ok(true) => held.unsaved_progress.note_written(number),
            Ok(false) => held.note_settled(Settled::Lost),
            Err(Error::Busy(_) | Error::DiskFull(_)) => held.unsaved_progress.leave_to_beat(),
            Err(error) => return Err(error),
        }
        Ok(!held.is_known_lost())
    }
}
