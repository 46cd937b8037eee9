//! Retention: finished items go after a while, a few at a time beside normal work, and their space goes back.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::run::{Change, Verb};
use super::steps::AT_A_TIME;
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::model::{Now, Status};
use crate::store::{Ended, Kept, Wait};

/// Rows looked at beside normal work.
const BESIDE: i64 = 64;
/// Pages given back in one transaction.
const PAGES_AT_A_TIME: i64 = 256;
/// How often a queue is tended when there was little to do.
const TEND_EVERY_MS: u64 = 10_000;

/// A way through finished items in the order they ended, in steps: those whose key is reserved, or that rows of other
/// tables refer to, are passed over, and not looked at again before the next way.
#[derive(Default)]
pub(super) struct SweepCursor {
    /// The last that was spared, or 0.
    after: i64,
    spared: i64,
}

/// One for each limit.
#[derive(Default)]
pub(super) struct SweepCursors {
    by_age: SweepCursor,
    by_count: SweepCursor,
    timeless: SweepCursor,
    failed: SweepCursor,
    cancelled: SweepCursor,
}

/// What a step has done.
#[derive(Default)]
struct Step {
    removed: usize,
    goes_on: bool,
    /// One of the items that foreign keys keep.
    kept: Option<Kept>,
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

    /// Tidies up until nothing is left to do, or it is enough: what loops do while they run. Returns one of the items that
    /// only foreign keys have kept.
    pub fn tend(&self, is_enough: impl Fn() -> bool + Sync) -> Result<Option<Kept>> {
        let session = self.session()?;
        self.reclaim_stuck(self.options.patience)?;
        // What was spared on a cursor that is under way may be free by now.
        *session.cursors.lock() = SweepCursors::default();
        let mut kept = None;
        self.in_steps(Verb::Tend, |tx| {
            let step = self.tidy(tx)?;
            kept = kept.take().or(step.kept);
            Ok((0, step.goes_on && !is_enough()))
        })?;
        session.tended_at.store(self.options.clock.now().ms(), Ordering::Relaxed);
        session.store.checkpoint()?;
        Ok(kept)
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
        let tidy = |tx: &Change| Ok((self.tidy(tx)?.goes_on, tx.now().ms()));
        // Nobody waits for this, so it waits for nobody.
        let wait = Wait::up_to(Duration::ZERO);
        let (more, now) = self.run_within(Verb::Tend, wait, tidy)?;
        // A step that found plenty is followed by the next one at once.
        session.tended_at.store(if more { i64::MIN } else { now }, Ordering::Relaxed);
        Ok(())
    }

    /// One step of everything that is tidied up.
    fn tidy(&self, tx: &Change) -> Result<Step> {
        self.refresh_settings(tx)?;
        let current = self.settings();
        let settings = &current.settings;
        let session = self.session()?;
        let cursors = &mut *session.cursors.lock();
        let mut steps = Vec::new();
        let before = |age: i64| Now(tx.now().ms().saturating_sub(age)).text();
        if let Some(age) = settings.keep_for_ms {
            steps.push(self.remove_older(tx, &mut cursors.by_age, Status::Done, &before(age), BESIDE)?);
        }
        if let Some(kept) = settings.keep_last {
            steps.push(self.remove_surplus(tx, &mut cursors.timeless, &mut cursors.by_count, kept)?);
        }
        if let Some(age) = settings.keep_failed_for_ms {
            steps.push(self.remove_older(tx, &mut cursors.failed, Status::Failed, &before(age), BESIDE)?);
            steps.push(self.remove_older(tx, &mut cursors.cancelled, Status::Cancelled, &before(age), BESIDE)?);
        }
        let mut is_more = steps.iter().any(|step| step.goes_on);
        let longest = [settings.rate, settings.group_rate].into_iter().flatten().map(|rate| rate.per_ms).max();
        if let Some(longest) = longest {
            let forgotten = tx.forget_starts(self.name(), tx.now().ms().saturating_sub(longest), BESIDE)?;
            is_more |= forgotten as i64 >= BESIDE;
        }
        Ok(Step {
            removed: steps.iter().map(|step| step.removed).sum(),
            goes_on: tx.give_back_space(PAGES_AT_A_TIME)? || is_more,
            kept: steps.into_iter().find_map(|step| step.kept),
        })
    }

    fn remove_older(
        &self,
        tx: &Change,
        cursor: &mut SweepCursor,
        status: Status,
        before: &str,
        most: i64,
    ) -> Result<Step> {
        let met = tx.ended(self.name(), status, Some(before), cursor.after, most)?;
        self.sweep_step(tx, cursor, &met, most)
    }

    /// A step on a cursor: removes what it has met, but for items whose key is reserved or that foreign keys keep. A cursor
    /// that does not go on begins anew.
    fn sweep_step(&self, tx: &Change, cursor: &mut SweepCursor, met: &[Ended], most: i64) -> Result<Step> {
        let free = met.iter().filter(|item| !item.is_reserved).map(|item| item.id).collect::<Vec<_>>();
        let (removed, kept) = self.remove(tx, &free)?;
        let kept_ids = kept.iter().map(|kept| kept.id).collect::<HashSet<_>>();
        for spared in met.iter().filter(|item| item.is_reserved || kept_ids.contains(&item.id)) {
            *cursor = SweepCursor { after: spared.id, spared: cursor.spared + 1 };
        }
        let goes_on = met.len() as i64 >= most;
        if !goes_on {
            *cursor = SweepCursor::default();
        }
        Ok(Step { removed, goes_on, kept: kept.into_iter().next() })
    }

    /// Removes items but for those that foreign keys of other tables refer to. Returns how many, and what was kept.
    fn remove(&self, tx: &Change, ids: &[i64]) -> Result<(usize, Vec<Kept>)> {
        let kept = tx.kept(self.name(), ids)?;
        let kept_ids = kept.iter().map(|kept| kept.id).collect::<HashSet<_>>();
        let mut removed = 0;
        for id in ids.iter().filter(|id| !kept_ids.contains(id)) {
            removed += usize::from(tx.delete(self.name(), *id)?);
        }
        Ok((removed, kept))
    }

    /// A step towards as many done items as are to be kept; those that are passed over cost later ones no place. Those of
    /// which nobody wrote when they ended go first.
    fn remove_surplus(
        &self,
        tx: &Change,
        timeless: &mut SweepCursor,
        cursor: &mut SweepCursor,
        kept: i64,
    ) -> Result<Step> {
        let surplus = tx.counts(self.name())?.done - kept - timeless.spared - cursor.spared;
        if surplus <= 0 {
            (*timeless, *cursor) = (SweepCursor::default(), SweepCursor::default());
            return Ok(Step::default());
        }
        let most = surplus.min(BESIDE);
        let met = tx.timeless(self.name(), timeless.after, most)?;
        let first = self.sweep_step(tx, timeless, &met, most)?;
        if first.goes_on {
            return Ok(first);
        }
        let left = surplus - met.len() as i64;
        let most = left.min(BESIDE - met.len() as i64);
        let met = tx.ended(self.name(), Status::Done, None, cursor.after, most)?;
        let second = self.sweep_step(tx, cursor, &met, most)?;
        Ok(Step {
            removed: first.removed + second.removed,
            goes_on: second.goes_on && most < left,
            kept: first.kept.or(second.kept),
        })
    }

    /// Removes items of one finished status that ended longer ago than `age_ms`, a few at a time. Returns how many, and
    /// one of those that only foreign keys have kept.
    pub fn prune(&self, status: Status, age_ms: i64) -> Result<(usize, Option<Kept>)> {
        if matches!(status, Status::Pending | Status::Processing | Status::Blocked) {
            return Err(Error::Invalid(format!("prune removes finished items, not {} ones", status.as_str())));
        }
        let before = Now(self.options.clock.now().ms().saturating_sub(age_ms)).text();
        let mut cursor = SweepCursor::default();
        let (mut is_over, mut kept) = (false, None);
        let removed = self.in_steps(Verb::Repair, |tx| {
            let mut removed = 0;
            if !is_over {
                let step = self.remove_older(tx, &mut cursor, status, &before, AT_A_TIME)?;
                (removed, is_over, kept) = (step.removed, !step.goes_on, kept.take().or(step.kept));
            }
            Ok((removed, tx.give_back_space(PAGES_AT_A_TIME)? || !is_over))
        })?;
        Ok((removed, kept))
    }

    /// Removes all items of one status, a few at a time. Returns how many, and one of those that foreign keys have kept.
    pub fn purge(&self, status: Status) -> Result<(usize, Option<Kept>)> {
        let (mut after, mut kept) = (i64::MIN, None);
        let removed = self.in_steps(Verb::Repair, |tx| {
            // No index has the blocked rows, and none can pass over what is kept: then the whole table is walked through.
            let (removed, is_more) = if status == Status::Blocked || tx.has_references()? {
                let Some(until) = tx.id_ahead(after, AT_A_TIME)? else { return Ok((0, false)) };
                let met = tx.ids_between(self.name(), status, after, until)?;
                after = until;
                let (removed, spared) = self.remove(tx, &met)?;
                kept = kept.take().or(spared.into_iter().next());
                (removed, true)
            } else {
                let removed = tx.purge(self.name(), status, AT_A_TIME)?;
                (removed, removed as i64 >= AT_A_TIME)
            };
            Ok((removed, tx.give_back_space(PAGES_AT_A_TIME)? || is_more))
        })?;
        Ok((removed, kept))
    }

    /// Gives the space of removed rows back to the file system.
    pub fn compact(&self) -> Result<()> {
        self.session()?.store.compact(self.wait())
    }
}
