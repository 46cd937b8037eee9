//! Rate limits: how many claims a queue or a group may make per period, counted in the file for all processes.

use super::Queue;
use super::run::Change;
use crate::error::Result;
use crate::model::Item;
use crate::model::Now;
use crate::rules::rate::Rate;
use crate::store::View;

/// The group name under which the claims of the whole queue are counted.
const QUEUE: &str = "";
/// How many rate-limited groups one claim makes claimable again.
pub(super) const FREED_AT_A_TIME: usize = 64;

impl Queue {
    /// Whether the queue's rate allows a claim now.
    pub(super) fn may_start(&self, tx: &Change) -> Result<bool> {
        Ok(self.next_start(tx.view())?.is_none())
    }

    /// Counts a claim. Returns whether the group's rate allows another now; if not, the group is held until it does.
    pub(super) fn count_start(&self, tx: &Change, item: &Item) -> Result<bool> {
        let current = self.settings();
        if let Some(rate) = current.settings.rate {
            self.count(tx, QUEUE, rate)?;
        }
        let (Some(rate), Some(group)) = (current.settings.group_rate, &item.group) else { return Ok(true) };
        self.count(tx, group, rate)?;
        match self.wait_of(tx.view(), group, rate)? {
            None => Ok(true),
            Some(until) => {
                tx.hold_group(self.name(), group, until)?;
                Ok(false)
            }
        }
    }

    /// Makes groups claimable again whose rate allows it; returns how many.
    pub(super) fn free_groups(&self, tx: &Change) -> Result<usize> {
        Ok(tx.free_groups(self.name(), self.furthest_hold(tx.now()), FREED_AT_A_TIME)?.len())
    }

    /// Whether a group is held longer than its rate can require, because the clock went back.
    pub(super) fn is_any_hold_ahead(&self, now: Now) -> Result<bool> {
        self.read(|view| view.is_any_hold_beyond(self.name(), self.furthest_hold(now)))
    }

    fn furthest_hold(&self, now: Now) -> i64 {
        // Without a known rate, the longest possible hold is unknown.
        self.settings().settings.group_rate.map_or(i64::MAX, |rate| rate.furthest(now))
    }

    /// Called after the group rate changed: recomputes how long each held group stays held.
    pub(super) fn review_holds(&self, tx: &Change, rate: Option<Rate>) -> Result<()> {
        for group in tx.free_groups(self.name(), i64::MIN, usize::MAX)? {
            if let Some(rate) = rate
                && let Some(until) = self.wait_of(tx.view(), &group, rate)?
            {
                tx.hold_group(self.name(), &group, until)?;
            }
        }
        Ok(())
    }

    /// When the queue's rate allows the next claim, if not now.
    pub(super) fn next_start(&self, view: &dyn View) -> Result<Option<i64>> {
        match self.settings().settings.rate {
            Some(rate) => self.wait_of(view, QUEUE, rate),
            None => Ok(None),
        }
    }

    /// Like `next_start`, but `None` if no item is ready.
    pub(super) fn next_start_if_wanted(&self, view: &dyn View) -> Result<Option<i64>> {
        let start = self.next_start(view)?;
        Ok(if start.is_some() && view.is_ready(self.name(), None, false)? { start } else { None })
    }

    fn wait_of(&self, view: &dyn View, group: &str, rate: Rate) -> Result<Option<i64>> {
        let earlier = rate.before(view.last_start(self.name(), group)?);
        Ok(rate.wait(view.start_at(self.name(), group, earlier)?, view.now()))
    }

    fn count(&self, tx: &Change, group: &str, rate: Rate) -> Result<()> {
        let number = tx.last_start(self.name(), group)?.saturating_add(1);
        tx.add_start(self.name(), group, number, i64::from(rate.count))
    }
}
