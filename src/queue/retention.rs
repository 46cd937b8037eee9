//! Retention: removes finished items after a while, a few at a time during normal work, and returns their space.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::portions::AT_A_TIME;
use super::run::{Change, Verb};
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::model::{Now, Status};
use crate::store::{Ended, LockWait, ReferencedItem};

/// How many rows a retention step looks at during normal work.
const BESIDE: i64 = 64;
/// How many pages one transaction returns to the file system.
const PAGES_AT_A_TIME: i64 = 256;
/// How often retention runs on a queue when there was little to do.
const TEND_EVERY_MS: u64 = 10_000;

/// How long a done item that is not kept stays while a caller waits for an end.
const SHOWN_FOR_MS: i64 = 10_000;

/// A sweep over finished items in the order they ended, in steps. It skips items whose key is reserved, that foreign
/// keys refer to or that other items need, until the next sweep.
#[derive(Default)]
pub(super) struct SweepCursor {
    /// The last item that was skipped, or 0.
    after: i64,
    spared: i64,
}

/// One cursor for each limit.
#[derive(Default)]
pub(super) struct SweepCursors {
    by_age: SweepCursor,
    by_count: SweepCursor,
    timeless: SweepCursor,
    failed: SweepCursor,
    cancelled: SweepCursor,
}

/// The result of one step.
#[derive(Default)]
struct Removed {
    removed: usize,
    goes_on: bool,
    /// One of the items that a foreign key keeps.
    kept: Option<ReferencedItem>,
}

/// What became of items that were to be removed.
struct RemovedItems {
    removed: usize,
    /// Those that foreign keys keep.
    kept: Vec<ReferencedItem>,
    /// All that were not removed.
    spared: HashSet<i64>,
}

impl Queue {
    /// Runs one small step of retention if it is time. An error is ignored here: the step is tried again, and a lasting
    /// cause also fails the other verbs.
    pub(super) fn tend_if_due(&self) {
        let Ok(session) = self.session() else { return };
        if self.is_time_to_tend(&session) {
            let _ = self.tend_one_step(&session);
        }
    }

    /// Runs retention until nothing is left to do or `is_enough` returns true; worker loops call it. Returns one of the
    /// items that only a foreign key keeps.
    pub fn tend(&self, is_enough: impl Fn() -> bool + Sync) -> Result<Option<ReferencedItem>> {
        let session = self.session()?;
        self.reclaim_stuck(self.options.patience)?;
        // Items that an unfinished sweep has skipped may be removable by now.
        *session.cursors.lock() = SweepCursors::default();
        let mut kept = None;
        self.in_portions(Verb::Tend, |tx| {
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

    fn tend_one_step(&self, session: &Session) -> Result<()> {
        let tidy = |tx: &Change| Ok((self.tidy(tx)?.goes_on, tx.now().ms()));
        // No caller needs this step, so it does not wait for the write lock.
        let wait = LockWait::up_to(Duration::ZERO);
        let (more, now) = self.run_within(Verb::Tend, wait, tidy)?;
        // If there is more to remove, the next step follows without a pause.
        session.tended_at.store(if more { i64::MIN } else { now }, Ordering::Relaxed);
        Ok(())
    }

    /// Runs one step of each kind of cleanup.
    fn tidy(&self, tx: &Change) -> Result<Removed> {
        self.refresh_settings(tx)?;
        let current = self.settings();
        let settings = &current.settings;
        let session = self.session()?;
        let cursors = &mut *session.cursors.lock();
        let mut steps = Vec::new();
        let before = |age: i64| Now(tx.now().ms().saturating_sub(age)).text();
        // A caller that waits for an end must be able to see it.
        let is_awaited = settings.removes_done() && session.store.are_ends_awaited();
        let shortest = if is_awaited { SHOWN_FOR_MS } else { 0 };
        let keep_for_ms = if is_awaited { Some(settings.keep_for_ms.unwrap_or(0)) } else { settings.keep_for_ms };
        if let Some(age) = keep_for_ms {
            steps.push(self.remove_older(tx, &mut cursors.by_age, Status::Done, &before(age.max(shortest)), BESIDE)?);
        }
        if let Some(kept) = settings.keep_last.filter(|_| !is_awaited) {
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
        Ok(Removed {
            removed: steps.iter().map(|step| step.removed).sum(),
            goes_on: tx.return_space(PAGES_AT_A_TIME)? || is_more,
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
    ) -> Result<Removed> {
        let met = tx.ended(self.name(), status, Some(before), cursor.after, most)?;
        self.sweep_step(tx, cursor, &met, most)
    }

    /// Advances a cursor: removes the items found, except those whose key is reserved or that a foreign key keeps. A
    /// cursor that reaches the end starts again.
    fn sweep_step(&self, tx: &Change, cursor: &mut SweepCursor, met: &[Ended], most: i64) -> Result<Removed> {
        let free = met.iter().filter(|item| !item.is_reserved).map(|item| item.id).collect::<Vec<_>>();
        let RemovedItems { removed, kept, spared } = self.remove(tx, &free)?;
        for spared in met.iter().filter(|item| item.is_reserved || spared.contains(&item.id)) {
            *cursor = SweepCursor { after: spared.id, spared: cursor.spared + 1 };
        }
        let goes_on = met.len() as i64 >= most;
        if !goes_on {
            *cursor = SweepCursor::default();
        }
        Ok(Removed { removed, goes_on, kept: kept.into_iter().next() })
    }

    /// Removes items, except those that foreign keys of other tables refer to, and those that other items need.
    fn remove(&self, tx: &Change, ids: &[i64]) -> Result<RemovedItems> {
        let kept = tx.kept(self.name(), ids)?;
        let mut spared = kept.iter().map(|kept| kept.id).collect::<HashSet<_>>();
        spared.extend(tx.needed(ids)?);
        let mut removed = 0;
        for id in ids.iter().filter(|id| !spared.contains(id)) {
            removed += usize::from(tx.delete(self.name(), *id)?);
        }
        Ok(RemovedItems { removed, kept, spared })
    }

    /// Removes some of the done items beyond the number to keep. Skipped items do not count towards that number. Items
    /// without a recorded end time are removed first.
    fn remove_surplus(
        &self,
        tx: &Change,
        timeless: &mut SweepCursor,
        cursor: &mut SweepCursor,
        kept: i64,
    ) -> Result<Removed> {
        let surplus = tx.counts(self.name())?.done - kept - timeless.spared - cursor.spared;
        if surplus <= 0 {
            (*timeless, *cursor) = (SweepCursor::default(), SweepCursor::default());
            return Ok(Removed::default());
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
        Ok(Removed {
            removed: first.removed + second.removed,
            goes_on: second.goes_on && most < left,
            kept: first.kept.or(second.kept),
        })
    }

    /// Removes items of one finished status that ended longer ago than `age_ms`, in batches. Returns how many, and one
    /// of those that only a foreign key keeps.
    pub fn prune(&self, status: Status, age_ms: i64) -> Result<(usize, Option<ReferencedItem>)> {
        if matches!(status, Status::Pending | Status::Processing | Status::Blocked) {
            return Err(Error::Invalid(format!("prune removes finished items, not {} ones", status.as_str())));
        }
        let before = Now(self.options.clock.now().ms().saturating_sub(age_ms)).text();
        let mut cursor = SweepCursor::default();
        let (mut is_over, mut kept) = (false, None);
        let removed = self.in_portions(Verb::Repair, |tx| {
            let mut removed = 0;
            if !is_over {
                let step = self.remove_older(tx, &mut cursor, status, &before, AT_A_TIME)?;
                (removed, is_over, kept) = (step.removed, !step.goes_on, kept.take().or(step.kept));
            }
            Ok((removed, tx.return_space(PAGES_AT_A_TIME)? || !is_over))
        })?;
        Ok((removed, kept))
    }

    /// Removes all items of one status, in batches. Returns how many, and one of those that a foreign key keeps.
    pub fn purge(&self, status: Status) -> Result<(usize, Option<ReferencedItem>)> {
        let (mut after, mut kept) = (i64::MIN, None);
        let removed = self.in_portions(Verb::Repair, |tx| {
            // No index can skip rows that are kept. In those cases the whole table is scanned.
            let (removed, is_more) = if status == Status::Blocked || tx.has_references()? || tx.has_dependencies()? {
                let Some(until) = tx.id_ahead(after, AT_A_TIME)? else { return Ok((0, false)) };
                let met = tx.ids_between(self.name(), status, after, until)?;
                after = until;
                let removed = self.remove(tx, &met)?;
                kept = kept.take().or(removed.kept.into_iter().next());
                (removed.removed, true)
            } else {
                let removed = tx.purge(self.name(), status, AT_A_TIME)?;
                (removed, removed as i64 >= AT_A_TIME)
            };
            Ok((removed, tx.return_space(PAGES_AT_A_TIME)? || is_more))
        })?;
        Ok((removed, kept))
    }

    /// Returns the space of removed rows to the file system.
    pub fn compact(&self) -> Result<()> {
        self.session()?.store.compact(self.wait())
    }
}
