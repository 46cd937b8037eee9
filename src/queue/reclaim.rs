//! Reclaiming lost claims: their process is dead, their lease expired, or a clock that went back would keep them too
//! long. Every claim reclaims a few of them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::rate::FREED_AT_A_TIME;
use super::run::{Change, Verb};
use super::{Queue, Session};
use crate::error::{Error, Result};
use crate::heartbeat::BEATS_PER_LEASE;
use crate::model::Event;
use crate::store::{Claimed, Wait};

/// How many claims are reclaimed at once; the rest is left to the next claim.
const AT_A_TIME: usize = 16;
/// How many claims of other programs are given a lease at once.
const GRANTED_AT_A_TIME: usize = 2_000;
/// The shortest time between two checks for dead processes, while claims find items.
const LOOK_FOR_DEAD_EVERY: Duration = Duration::from_millis(500);
/// The shortest time between two checks for stuck claims by calls that wait for an item's end.
const LOOK_FOR_STUCK_EVERY: Duration = Duration::from_millis(250);
/// How often leases are checked against a clock that may have gone back.
const LOOK_AHEAD_MS: u64 = 1_000;
/// How often a claim checks whether a live holder has renewed its lease.
pub(super) const RENEWAL_PAUSE: Duration = Duration::from_millis(5);

/// The result of reclaiming.
#[derive(Default)]
pub(super) struct Reclaimed {
    /// Whether any claim was reclaimed.
    pub any: bool,
    /// Whether there may be more.
    pub more: bool,
    /// Whether a lease has expired that its live holder is about to renew.
    pub awaits_renewal: bool,
}

impl Queue {
    /// Reclaims a bounded number of claims.
    pub(super) fn reclaim(&self, tx: &Change, has_expired: bool, looks_for_dead: bool) -> Result<Reclaimed> {
        // Each of these reclaims what it finds before the next one looks, because a claim may be lost for several
        // reasons.
        let revived = looks_for_dead && self.reclaim_from_dead(tx)?;
        let (expired, awaits_renewal) = if has_expired { self.expired(tx)? } else { (Vec::new(), false) };
        self.take_back(tx, &expired)?;
        let ahead = self.look_ahead(tx)?;
        self.take_back(tx, &ahead)?;
        Ok(Reclaimed {
            any: revived || !expired.is_empty() || !ahead.is_empty(),
            more: expired.len() >= AT_A_TIME || ahead.len() >= AT_A_TIME,
            awaits_renewal,
        })
    }

    /// Reclaims stuck claims, as a claim would. Callers that wait for an item must learn of its end even if no worker
    /// claims any more. Waits at most `limit` for another writer. Returns whether anything was reclaimed.
    pub(super) fn reclaim_stuck(&self, limit: Duration) -> Result<bool> {
        let session = self.session()?;
        let mut any = false;
        let wait = Wait { limit, ..self.wait() };
        while self.is_anything_stuck(&session)? {
            let reclaim = |tx: &Change| {
                self.refresh_settings_if_readable(tx)?;
                let reclaimed = self.reclaim(tx, true, true)?;
                if reclaimed.any {
                    tx.tell(Event::Changed);
                }
                Ok(reclaimed)
            };
            let reclaimed = match self.run_within(Verb::Reclaim, wait, reclaim) {
                Err(Error::Busy(_)) if limit < self.options.patience => break,
                reclaimed => reclaimed?,
            };
            any |= reclaimed.any;
            if !reclaimed.any || !reclaimed.more {
                break;
            }
        }
        Ok(any)
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
        let is_stuck = self
            .view(|view| Ok(view.scout(self.name(), lease_ms, true)?.expired || view.has_anyone_died(self.name())?))?;
        Ok(is_stuck || self.seems_ahead(session, now)?)
    }

    /// Reclaims this queue's items from dead processes, whose liveness locks the system has dropped. Returns whether
    /// anything was reclaimed.
    pub(super) fn reclaim_from_dead(&self, tx: &Change) -> Result<bool> {
        let session = self.session()?;
        *session.looked_for_dead_at.lock() = Some(Instant::now());
        let mut came_back = false;
        for holder in tx.holders(self.name())? {
            if session.store.is_alive(holder) {
                continue;
            }
            let claims = tx.claims_of(self.name(), holder, AT_A_TIME)?;
            came_back |= !claims.is_empty();
            let is_all = claims.len() < AT_A_TIME;
            self.take_back(tx, &claims)?;
            if is_all {
                tx.remove_holder(self.name(), holder)?;
            }
        }
        Ok(came_back)
    }

    pub(super) fn is_time_to_look_for_dead(&self) -> Result<bool> {
        Ok(self.session()?.looked_for_dead_at.lock().is_none_or(|last| last.elapsed() >= LOOK_FOR_DEAD_EVERY))
    }

    /// Returns expired claims, except those that a live holder is about to renew, and whether there are any of the
    /// latter.
    fn expired(&self, tx: &Change) -> Result<(Vec<Claimed>, bool)> {
        let session = self.session()?;
        let lease_ms = self.settings().settings.lease_ms();
        tx.grant_lease(self.name(), lease_ms, GRANTED_AT_A_TIME)?;
        let found = tx.expired(self.name(), lease_ms, AT_A_TIME)?;
        session.renewals.lock().retain(|id, _| found.iter().any(|claim| claim.fence.id == *id));
        let (renewed, expired): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|claim| self.is_about_to_be_renewed(&session, claim));
        Ok((expired, !renewed.is_empty()))
    }

    /// Another writer may have kept a live holder from renewing its claim for longer than the lease. The holder shows
    /// that it is waiting, and is granted one renewal interval. A process that was stopped meanwhile loses its claim
    /// after that.
    fn is_about_to_be_renewed(&self, session: &Session, claim: &Claimed) -> bool {
        let waits = claim.holder.is_some_and(|holder| session.store.sees_renewal_wait(holder));
        if !waits {
            return false;
        }
        let lease_ms = claim.lease_ms.unwrap_or(self.settings().settings.lease_ms());
        let longest = Duration::from_millis(lease_ms.max(0).unsigned_abs()) / BEATS_PER_LEASE;
        let mut renewals = session.renewals.lock();
        let seen = renewals.entry(claim.fence.id).or_insert((claim.fence.attempt_number(), Instant::now()));
        if seen.0 != claim.fence.attempt_number() {
            *seen = (claim.fence.attempt_number(), Instant::now());
        }
        seen.1.elapsed() < longest
    }

    /// Returns claims that a clock that went back would keep too long. The search reads all claims, so it is not done
    /// at every claim.
    fn look_ahead(&self, tx: &Change) -> Result<Vec<Claimed>> {
        let session = self.session()?;
        if !self.is_time_to_look_ahead(&session) {
            return Ok(Vec::new());
        }
        // The clock went back, perhaps before this object was opened. Ticks and held groups must not wait too long
        // either.
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        if tx.now().ms() < last || last == i64::MIN {
            self.bring_ticks_closer(tx)?;
            while self.free_groups(tx)? >= FREED_AT_A_TIME {}
        }
        let ahead = tx.ahead(self.name(), self.settings().settings.lease_ms(), AT_A_TIME)?;
        if ahead.len() < AT_A_TIME {
            session.looked_ahead_at.store(tx.now().ms(), Ordering::Relaxed);
        }
        Ok(ahead)
    }

    pub(super) fn is_time_to_look_ahead(&self, session: &Session) -> bool {
        let last = session.looked_ahead_at.load(Ordering::Relaxed);
        self.options.clock.now().ms().abs_diff(last) >= LOOK_AHEAD_MS
    }
}
