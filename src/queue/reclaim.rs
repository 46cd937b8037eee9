//! Reclaiming lost claims: their process is dead, their lease expired, or a clock that went back would keep them too
//! long. Every claim reclaims a few of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::advance::{Claiming, Findings, advance};
use super::claim::Claim;
use super::rate::FREED_AT_A_TIME;
use super::run::Verb;
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::heartbeat::BEATS_PER_LEASE;
use crate::store::{Claimed, LockWait};

/// The shortest time between two checks for dead processes, while claims find items.
const LOOK_FOR_DEAD_EVERY: Duration = Duration::from_millis(500);
/// The shortest time between two checks for stuck claims by calls that wait for an item's end.
const LOOK_FOR_STUCK_EVERY: Duration = Duration::from_millis(250);
/// How often leases are checked against a clock that may have gone back.
const LOOK_AHEAD_MS: u64 = 1_000;
/// A claim checks often whether a live holder has renewed its lease; after this time it no longer does.
const RENEWED_AFTER: Duration = Duration::from_millis(200);

/// A claim whose lease expired while its holder waited to renew it.
#[derive(Clone, Copy)]
pub(super) struct RenewalWait {
    attempt: i64,
    since: Instant,
    seen: Instant,
}

impl RenewalWait {
    /// Returns how long the holder has waited. A claim that was not seen for a while has been renewed since: this is
    /// another wait.
    fn see(&mut self, attempt: i64, now: Instant) -> Duration {
        if self.attempt != attempt || now.duration_since(self.seen) > RENEWED_AFTER {
            *self = Self { attempt, since: now, seen: now };
        }
        self.seen = now;
        now.duration_since(self.since)
    }
}

/// How often a claim checks whether a live holder has renewed its lease.
pub(super) const RENEWAL_PAUSE: Duration = Duration::from_millis(5);

impl Queue {
    /// Reclaims stuck claims and updates dependents, as a claim would. Callers that wait for an item must learn of its end even if no worker
    /// claims any more. Waits at most `limit` for another writer. Returns whether anything was reclaimed.
    pub(super) fn reclaim_stuck(&self, limit: Duration) -> Result<bool> {
        let session = self.session()?;
        let mut any = false;
        let wait = LockWait { limit, ..self.wait() };
        while self.is_anything_stuck(&session)? {
            let reclaimed = match self.reclaim_some(wait) {
                Err(Error::Busy(_)) if limit < self.options.patience => break,
                reclaimed => reclaimed?,
            };
            any |= reclaimed;
            if !reclaimed {
                break;
            }
        }
        Ok(any)
    }

    /// Finds a bounded number of lost claims and ends them. Returns whether it found any that are not about to be
    /// renewed.
    fn reclaim_some(&self, wait: LockWait) -> Result<bool> {
        let how = &Claim { limit: 0, ..Claim::default() };
        let mut findings = Findings::default();
        let mut has_flowed = false;
        for _ in 0..2 {
            let (liveness, unless) = (&None, &AtomicBool::new(false));
            let claiming = Claiming { how, liveness, unless, lease: None, closing: None, findings };
            let outcome = advance(&[self], Verb::Reclaim, wait, &[], Some(claiming))?;
            if !outcome.findings.has_lost() {
                return Ok(outcome.has_reclaimed || outcome.has_flowed || has_flowed);
            }
            has_flowed |= outcome.has_flowed;
            findings = outcome.findings;
        }
        Ok(has_flowed)
    }

    /// Limits the checks, because many callers may be waiting.
    pub(super) fn is_time_to_look_for_stuck(&self, session: &Session) -> bool {
        let mut last = session.looked_for_stuck_at.lock();
        let is_time = last.is_none_or(|time| time.elapsed() >= LOOK_FOR_STUCK_EVERY);
        if is_time {
            *last = Some(Instant::now());
        }
        is_time
    }

    fn is_anything_stuck(&self, session: &Session) -> Result<bool> {
        let now = self.options.clock.now();
        let lease_ms = self.settings().settings.lease_ms();
        let is_stuck = self.view(|view| {
            let scout = view.scout(self.name(), lease_ms, true)?;
            Ok(scout.expired || scout.flow || view.has_anyone_died(self.name())?)
        })?;
        Ok(is_stuck || self.seems_ahead(session, now)?)
    }

    pub(super) fn is_time_to_look_for_dead(&self, session: &Session) -> bool {
        session.looked_for_dead_at.lock().is_none_or(|last| last.elapsed() >= LOOK_FOR_DEAD_EVERY)
    }

    /// Another writer may have kept a live holder from renewing its claim for longer than the lease. The holder shows
    /// that it is waiting, and is granted one renewal interval. A process that was stopped meanwhile loses its claim
    /// after that.
    pub(super) fn is_about_to_be_renewed(&self, session: &Session, claim: &Claimed) -> bool {
        if !claim.awaits_renewal {
            return false;
        }
        let lease_ms = claim.lease_ms.unwrap_or(self.settings().settings.lease_ms());
        let longest = Duration::from_millis(lease_ms.max(0).unsigned_abs()) / BEATS_PER_LEASE;
        let mut renewals = session.renewals.lock();
        let (attempt, now) = (claim.fence.attempt_number(), Instant::now());
        let wait = renewals.entry(claim.fence.id).or_insert(RenewalWait { attempt, since: now, seen: now });
        wait.see(attempt, now) < longest
    }

    /// Called before a claim: if the clock went back, perhaps before this object was opened, ticks and held groups must
    /// not wait too long.
    pub(super) fn follow_clock_back(&self, session: &Session, wait: LockWait) -> Result<()> {
        let (now, last) = (self.options.clock.now(), session.looked_ahead_at.load(Ordering::Relaxed));
        let went_back = now.ms() < last || last == i64::MIN;
        if !went_back || !(self.is_any_tick_ahead(now)? || self.is_any_hold_ahead(now)?) {
            return Ok(());
        }
        self.run_within(Verb::Reclaim, wait, |tx| {
            self.bring_ticks_closer(tx)?;
            while self.free_groups(tx)? >= FREED_AT_A_TIME {}
            Ok(())
        })
    }

    pub(super) fn is_time_to_look_ahead(&self, session: &Session) -> bool {
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        self.options.clock.now().ms().abs_diff(last) >= LOOK_AHEAD_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_to_renew_is_counted_from_its_own_beginning() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut wait = RenewalWait { attempt: 1, since: start, seen: start };
        assert_eq!(wait.see(1, at(100)), Duration::from_millis(100));
        assert_eq!(wait.see(1, at(250)), Duration::from_millis(250), "the same wait goes on");
        assert_eq!(wait.see(1, at(900)), Duration::ZERO, "it was renewed in between");
        assert_eq!(wait.see(2, at(950)), Duration::ZERO, "another claim");
    }
}
