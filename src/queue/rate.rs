//! Rate limits: how many claims a queue or a group may make per period, counted in the file for all processes.

use super::Queue;
use super::run::Change;
use crate::error::Result;
use crate::model::Now;
use crate::rules::rate::Rate;
use crate::store::{View, WHOLE_QUEUE};

/// How many rate-limited groups are made claimable at once after the clock went back.
pub(super) const FREED_AT_A_TIME: usize = 64;

impl Queue {
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
                && let Some(until) = tx.view().rate_wait(self.name(), &group, rate)?
            {
                tx.hold_group(self.name(), &group, until)?;
            }
        }
        Ok(())
    }

    /// When the queue's rate allows the next claim, if not now.
    pub(super) fn next_start(&self, view: &dyn View) -> Result<Option<i64>> {
        match self.settings().settings.rate {
            Some(rate) => view.rate_wait(self.name(), WHOLE_QUEUE, rate),
            None => Ok(None),
        }
    }
}
