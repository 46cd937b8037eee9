//! Retention: finished items go after a while, a few at a time beside normal work, and their space goes back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::steps::AT_A_TIME;
use super::{Queue, Session};
use crate::clock::Now;
use crate::error::{Error, Result};
use crate::item::Status;
use crate::sqlite::{Flush, Tx, Wait};

/// Rows looked at beside normal work.
const BESIDE: i64 = 64;
/// Pages given back in one transaction.
const PAGES_AT_A_TIME: i64 = 256;
/// How often a queue is tended when there was little to do.
const TEND_EVERY_MS: u64 = 10_000;

/// A way through finished items in the order they ended, in steps: those whose key is reserved are passed over, and not
/// looked at again before the next way.
#[derive(Default)]
pub(super) struct Walk {
    /// The last that was spared, or 0.
    after: i64,
    spared: i64,
}

/// One for each limit.
#[derive(Default)]
pub(super) struct Walks {
    by_age: Walk,
    by_count: Walk,
    failed: Walk,
    cancelled: Walk,
}

impl Queue {
    /// A small step of tidying up, if it is time for one. What fails here is tried again later and told by the verbs
    /// themselves if it lasts.
    pub(super) fn tend_beside(&self) {
        let Ok(session) = self.session() else { return };
        if self.is_time_to_tend(&session) {
            let _ = self.tend_a_little(&session);
        }
    }

    /// Tidies up until nothing is left to do, or it is enough: what loops do while they run.
    pub fn tend(&self, is_enough: impl Fn() -> bool + Sync) -> Result<()> {
        let session = self.session()?;
        // What was spared on a walk that is under way may be free by now.
        *session.walks.lock() = Walks::default();
        self.in_steps_with(Flush::Normal, |tx| Ok((0, self.tidy(tx)? && !is_enough())))?;
        session.tended_at.store(self.options.clock.now().ms(), Ordering::Relaxed);
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

    fn tend_a_little(&self, session: &Session) -> Result<()> {
        let tidy = |tx: &Tx| Ok((self.tidy(tx)?, tx.now().ms()));
        // Nobody waits for this, so it waits for nobody.
        let wait = Wait::up_to(Duration::ZERO);
        let (more, now) = session.database.write(Flush::Normal, &self.options.clock, wait, tidy)?;
        // A step that found plenty is followed by the next one at once.
        session.tended_at.store(if more { i64::MIN } else { now }, Ordering::Relaxed);
        Ok(())
    }

    /// Says whether there is more to do.
    fn tidy(&self, tx: &Tx) -> Result<bool> {
        self.refresh_settings(tx)?;
        let current = self.settings();
        let settings = &current.settings;
        let session = self.session()?;
        let walks = &mut *session.walks.lock();
        let mut is_more = false;
        let before = |age: i64| Now(tx.now().ms().saturating_sub(age)).text();
        if let Some(age) = settings.keep_for_ms {
            is_more |= self.go_on(tx, &mut walks.by_age, "done", Some(&before(age)), BESIDE)?.1;
        }
        if let Some(kept) = settings.keep_last {
            is_more |= self.remove_surplus(tx, &mut walks.by_count, kept)?;
        }
        if let Some(age) = settings.keep_failed_for_ms {
            is_more |= self.go_on(tx, &mut walks.failed, "failed", Some(&before(age)), BESIDE)?.1;
            is_more |= self.go_on(tx, &mut walks.cancelled, "cancelled", Some(&before(age)), BESIDE)?.1;
        }
        let longest = [settings.rate, settings.group_rate].into_iter().flatten().map(|rate| rate.per_ms).max();
        if let Some(longest) = longest {
            let forgotten = tx.forget_starts(self.name(), tx.now().ms().saturating_sub(longest), BESIDE)?;
            is_more |= forgotten as i64 >= BESIDE;
        }
        Ok(tx.give_back_space(PAGES_AT_A_TIME)? || is_more)
    }

    /// A step on a walk: removes what it meets, but for items whose key is reserved. Says how many, and whether the walk
    /// goes on; else the next one begins anew.
    fn go_on(&self, tx: &Tx, walk: &mut Walk, status: &str, before: Option<&str>, most: i64) -> Result<(usize, bool)> {
        let met = tx.ended(self.name(), status, before, walk.after, most)?;
        let mut removed = 0;
        for item in &met {
            if item.is_reserved {
                *walk = Walk { after: item.id, spared: walk.spared + 1 };
            } else {
                removed += usize::from(tx.delete(self.name(), item.id)?);
            }
        }
        let goes_on = met.len() as i64 >= most;
        if !goes_on {
            *walk = Walk::default();
        }
        Ok((removed, goes_on))
    }

    /// A step towards as many done items as are to be kept; those whose key is reserved cost later ones no place.
    fn remove_surplus(&self, tx: &Tx, walk: &mut Walk, kept: i64) -> Result<bool> {
        let surplus = tx.counts(self.name())?.done - kept - walk.spared;
        if surplus <= 0 {
            *walk = Walk::default();
            return Ok(false);
        }
        let timeless = tx.prune_timeless(self.name(), surplus.min(BESIDE))? as i64;
        if timeless == surplus.min(BESIDE) {
            return Ok(timeless < surplus);
        }
        let most = (surplus - timeless).min(BESIDE - timeless);
        Ok(self.go_on(tx, walk, "done", None, most)?.1 && most < surplus - timeless)
    }

    /// Removes items of one finished status that ended longer ago than `age_ms`, a few at a time; returns how many.
    pub fn prune(&self, status: Status, age_ms: i64) -> Result<usize> {
        if matches!(status, Status::Pending | Status::Processing | Status::Blocked) {
            return Err(Error::Invalid(format!("prune removes finished items, not {} ones", status.as_str())));
        }
        let before = Now(self.options.clock.now().ms().saturating_sub(age_ms)).text();
        let mut walk = Walk::default();
        let mut is_over = false;
        self.in_steps(|tx| {
            let mut removed = 0;
            if !is_over {
                let (count, goes_on) = self.go_on(tx, &mut walk, status.as_str(), Some(&before), AT_A_TIME)?;
                (removed, is_over) = (count, !goes_on);
            }
            Ok((removed, tx.give_back_space(PAGES_AT_A_TIME)? || !is_over))
        })
    }

    /// Removes all items of one status, a few at a time; returns how many.
    pub fn purge(&self, status: Status) -> Result<usize> {
        if status == Status::Blocked {
            return self.purge_blocked();
        }
        self.in_steps(|tx| {
            let removed = tx.purge(self.name(), status.as_str(), AT_A_TIME)?;
            Ok((removed, tx.give_back_space(PAGES_AT_A_TIME)? || removed as i64 >= AT_A_TIME))
        })
    }

    /// No index has the blocked rows, so the whole table is walked through, a few rows at a time.
    fn purge_blocked(&self) -> Result<usize> {
        let mut after = i64::MIN;
        self.in_steps(|tx| {
            let Some(until) = tx.id_ahead(after, AT_A_TIME)? else { return Ok((0, false)) };
            let removed = tx.purge_between(self.name(), Status::Blocked.as_str(), after, until)?;
            after = until;
            Ok((removed, true))
        })
    }

    /// Gives the space of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        self.session()?.database.compact(self.wait())
    }
}
