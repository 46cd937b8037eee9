//! The worker lease under the rules of membox's own module. The whole process is one worker, and the reader of a record
//! decides how long a heartbeat counts. Taking over the lease releases every item in progress.

use super::Queue;
use super::advance::decided;
use super::lease::{LeaseHold, this_process};
use super::run::{Change, Verb};
use crate::error::Result;
use crate::model::Event;
use crate::rules::lease::{self, LeaseRecord};
use crate::rules::outcome::Ending;
use crate::store::Scope;

impl Queue {
    /// Stores worker leases where membox's own programs look for them. Returns whether that is possible.
    pub fn share_leases_with_membox(&self) -> Result<bool> {
        if self.read(|view| view.shares_leases_with_membox())? {
            return Ok(true);
        }
        self.run(Verb::Lease, |tx| tx.share_leases_with_membox())
    }

    /// Takes over the lease unless another live process holds it.
    pub fn take_over_worker_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let hold = LeaseHold::of_membox(self, ttl_ms)?;
        let taken = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            tx.lock(Scope::Lease(&key))?;
            if let Some(stored) = tx.worker_lease(&key)? {
                if self.live_lease(&stored, ttl_ms, tx)?.is_some_and(|record| !record.is_of(this_process())) {
                    return Ok(false);
                }
                self.release_everything(tx)?;
            }
            tx.clear_setting(&self.announcement_key())?;
            tx.set_worker_lease(&key, &hold.record(tx.now()).render())?;
            tx.tell(Event::Changed);
            Ok(true)
        })?;
        if taken {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(taken)
    }

    /// Renews the heartbeat unless another process holds the lease. Returns whether it did.
    pub fn refresh_process_lease(&self, ttl_ms: i64) -> Result<bool> {
        let session = self.session()?;
        let held = self.worker_hold()?;
        let hold = if let Some(hold) = held { hold } else { LeaseHold::of_membox(self, ttl_ms)? };
        let refreshed = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            tx.lock(Scope::Lease(&key))?;
            let is_free = tx.worker_lease(&key)?.is_none_or(|stored| is_ours_or_unreadable(&stored));
            if is_free {
                tx.set_worker_lease(&key, &hold.record(tx.now()).render())?;
            }
            Ok(is_free)
        })?;
        if refreshed {
            *session.worker_lease.lock() = Some(hold);
        }
        Ok(refreshed)
    }

    /// Releases the lease unless another process holds it. Returns whether there was one to release.
    pub fn release_process_lease(&self) -> Result<bool> {
        let session = self.session()?;
        let released = self.run(Verb::Lease, |tx| {
            let key = lease::key(self.name());
            tx.lock(Scope::Lease(&key))?;
            let is_ours = tx.worker_lease(&key)?.is_some_and(|stored| is_ours_or_unreadable(&stored));
            if is_ours {
                tx.clear_worker_lease(&key)?;
            }
            Ok(is_ours)
        })?;
        session.worker_lease.lock().take();
        Ok(released)
    }

    /// Whether there is a heartbeat younger than `ttl_ms` whose process is not known to be dead.
    pub fn is_worker_younger_than(&self, ttl_ms: i64) -> Result<bool> {
        let store = &self.session()?.store;
        let stored = self.read(|view| view.worker_lease(&lease::key(self.name())))?;
        let now = self.options.clock.now();
        Ok(lease::live(stored.as_deref(), ttl_ms, now, |holder| store.is_alive(holder)).is_some())
    }

    fn live_lease(&self, stored: &str, ttl_ms: i64, tx: &Change) -> Result<Option<LeaseRecord>> {
        let store = &self.session()?.store;
        Ok(lease::live(Some(stored), ttl_ms, tx.now(), |holder| store.is_alive(holder)))
    }

    /// Claims of dead processes count as lost, so that an item that kills its workers reaches its retry limit. All
    /// other claims are released uncounted, however recent.
    fn release_everything(&self, tx: &Change) -> Result<()> {
        self.refresh_settings_if_readable(tx)?;
        let store = &self.session()?.store;
        tx.lock(Scope::Claims(self.name()))?;
        for claim in tx.in_progress(self.name())? {
            let is_dead = claim.holder.is_some_and(|holder| !store.is_alive(holder));
            let ending = if is_dead { Ending::Lost { worker: claim.worker.clone() } } else { Ending::released_now() };
            tx.end(self.name(), &decided(0, claim, ending, &self.settings().settings)?)?;
        }
        Ok(())
    }
}

fn is_ours_or_unreadable(stored: &str) -> bool {
    LeaseRecord::parse(stored).is_none_or(|record| record.is_of(this_process()))
}
