//! Retention: finished items go after a while, a few at a time beside normal work, and their space goes back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Queue, Session};
use crate::clock::Now;
use crate::error::{Error, Result};
use crate::item::Status;
use crate::sqlite::{Flush, Tx, Wait};

/// Rows removed in one transaction by people's verbs; others may write in between.
pub(super) const REMOVED_AT_A_TIME: i64 = 1_000;
/// Rows removed beside normal work.
const REMOVED_BESIDE: i64 = 64;
/// Pages given back in one transaction.
const PAGES_AT_A_TIME: i64 = 256;
/// How often a queue is tended when there was little to do.
const TEND_EVERY_MS: u64 = 10_000;

impl Queue {
    /// A small step of tidying up, if it is time for one. What fails here is tried again later and told by the verbs
    /// themselves if it lasts.
    pub(super) fn tend_beside(&self) {
        let Ok(session) = self.session() else { return };
        if self.is_time_to_tend(&session) {
            // Nobody waits for this, so it waits for nobody.
            let _ = self.tend_a_little(&session, Wait::up_to(Duration::ZERO));
        }
    }

    /// Tidies up until nothing is left to do: what loops do while they run.
    pub fn tend(&self) -> Result<()> {
        let session = self.session()?;
        while self.tend_a_little(&session, self.wait())? {}
        session.database.checkpoint()
    }

    fn is_time_to_tend(&self, session: &Session) -> bool {
        let settings = &self.settings().settings;
        let has_limits = settings.keep_for_ms.is_some()
            || settings.keep_last.is_some()
            || settings.keep_failed_for_ms.is_some()
            || settings.rate.is_some()
            || settings.group_rate.is_some();
        let last = session.tended_at.load(Ordering::Relaxed);
        has_limits && self.options.clock.now().ms().abs_diff(last) >= TEND_EVERY_MS
    }

    /// Says whether there is more to do.
    fn tend_a_little(&self, session: &Session, wait: Wait) -> Result<bool> {
        let tidy = |tx: &Tx| Ok((self.tidy(tx)?, tx.now().ms()));
        let (more, now) = session.database.write(Flush::Normal, &self.options.clock, wait, tidy)?;
        // A step that found plenty is followed by the next one at once.
        session.tended_at.store(if more { i64::MIN } else { now }, Ordering::Relaxed);
        Ok(more)
    }

    fn tidy(&self, tx: &Tx) -> Result<bool> {
        self.refresh_settings(tx)?;
        let current = self.settings();
        let settings = &current.settings;
        let mut removed = 0;
        let before = |age: i64| Now(tx.now().ms().saturating_sub(age)).text();
        if let Some(age) = settings.keep_for_ms {
            removed += tx.prune(self.name(), "done", &before(age), REMOVED_BESIDE)?;
        }
        if let Some(kept) = settings.keep_last {
            let surplus = tx.counts(self.name())?.done - kept;
            if surplus > 0 {
                removed += tx.prune_oldest(self.name(), surplus.min(REMOVED_BESIDE))?;
            }
        }
        if let Some(age) = settings.keep_failed_for_ms {
            for status in ["failed", "cancelled"] {
                removed += tx.prune(self.name(), status, &before(age), REMOVED_BESIDE)?;
            }
        }
        let longest = [settings.rate, settings.group_rate].into_iter().flatten().map(|rate| rate.per_ms).max();
        if let Some(longest) = longest {
            removed += tx.forget_starts(self.name(), tx.now().ms().saturating_sub(longest), REMOVED_BESIDE)?;
        }
        let more_space = tx.give_back_space(PAGES_AT_A_TIME)?;
        Ok(removed as i64 >= REMOVED_BESIDE || more_space)
    }

    /// Removes items of one finished status that ended longer ago than `age_ms`, a few at a time; returns how many.
    pub fn prune(&self, status: Status, age_ms: i64) -> Result<usize> {
        if matches!(status, Status::Pending | Status::Processing | Status::Blocked) {
            return Err(Error::Invalid(format!("prune removes finished items, not {} ones", status.as_str())));
        }
        let before = Now(self.options.clock.now().ms().saturating_sub(age_ms)).text();
        self.remove_in_steps(|tx| tx.prune(self.name(), status.as_str(), &before, REMOVED_AT_A_TIME))
    }

    /// Removes all items of one status, a few at a time; returns how many.
    pub fn purge(&self, status: Status) -> Result<usize> {
        let removed = match status {
            Status::Done | Status::Failed | Status::Cancelled => 0,
            Status::Pending | Status::Processing | Status::Blocked => self.purge_unfinished(status)?,
        };
        let total = removed + self.remove_in_steps(|tx| tx.purge(self.name(), status.as_str(), REMOVED_AT_A_TIME))?;
        self.ring();
        Ok(total)
    }

    /// No index has all unfinished rows, so the whole table is walked through, a few rows at a time.
    fn purge_unfinished(&self, status: Status) -> Result<usize> {
        let (mut total, mut after) = (0, Some(i64::MIN));
        while let Some(id) = after {
            after = self.write(|tx| {
                let until = tx.id_ahead(id, REMOVED_AT_A_TIME)?;
                if let Some(until) = until {
                    total += tx.purge_between(self.name(), status.as_str(), id, until)?;
                }
                Ok(until)
            })?;
        }
        Ok(total)
    }

    fn remove_in_steps(&self, step: impl Fn(&Tx) -> Result<usize> + Sync) -> Result<usize> {
        let mut total = 0;
        loop {
            let (removed, more_space) = self.write(|tx| Ok((step(tx)?, tx.give_back_space(PAGES_AT_A_TIME)?)))?;
            total += removed;
            if removed < REMOVED_AT_A_TIME as usize && !more_space {
                return Ok(total);
            }
        }
    }

    /// Gives the space of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        self.session()?.database.compact(self.wait())
    }
}
